# Amounts are shown as people expect them.
. tests/assert.sh
. lib/money.sh

same "5 cents are 0.05" 0.05 "$(money 5)"
same "125000 cents are 1,250.00" 1,250.00 "$(money 125000)"
same "-320 cents are -3.20" -3.20 "$(money -320)"
same "123456789 cents are 1,234,567.89" 1,234,567.89 "$(money 123456789)"

exit $failed
