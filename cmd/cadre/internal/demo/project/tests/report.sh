# The whole tool, on a ledger.
. tests/assert.sh

june=$(sh tally ledger/june.txt)
same "June: rent" "rent           1,250.00" "$(line 1 "$june")"
same "June: food, a refund taken off" "food           1,141.93" "$(line 2 "$june")"
same "June: travel" "travel            12.50" "$(line 3 "$june")"
same "June: the total comes last" "total          2,404.43" "$(line 4 "$june")"

food=$(sh tally --only food ledger/june.txt)
same "--only food: its total" "total          1,141.93" "$(line 2 "$food")"

broken=$(sh tally ledger/broken.txt 2>&1)
same "a broken amount ends with status 1" 1 $?
has "a broken amount is named" "1o.20" "$broken"

exit $failed
