# The report. Needs parse_amount (lib/parse.sh) and money (lib/money.sh).

# categories LEDGER: prints each category once, in the order of appearance.
categories() {
    seen=' '
    while read -r date category rest; do
        case $date in
        '' | '#'*) continue ;;
        esac
        case $seen in
        *" $category "*) ;;
        *)
            seen="$seen$category "
            echo "$category"
            ;;
        esac
    done <"$1"
}

# row NAME AMOUNT: prints one line of the report.
row() {
    printf '%-10s %12s\n' "$1" "$2"
}

# report LEDGER [ONLY]: prints what each category comes to, and the total; with
# ONLY, of that category alone. Returns 1 when an entry has no valid amount.
report() {
    for category in $(categories "$1"); do
        row "$category" '?'
    done
}
