# Amounts are read exactly.
. tests/assert.sh
. lib/parse.sh

same "12.34 is 1234 cents" 1234 "$(parse_amount 12.34)"
same "7 is 700 cents" 700 "$(parse_amount 7)"
same "84.08 is 8408 cents" 8408 "$(parse_amount 84.08)"
same "12.5 is 1250 cents" 1250 "$(parse_amount 12.5)"
same "-3.20 is -320 cents" -320 "$(parse_amount -3.20)"
same "1o.20 is refused" refused "$(parse_amount 1o.20 || echo refused)"
same "1.234 is refused" refused "$(parse_amount 1.234 || echo refused)"

exit $failed
