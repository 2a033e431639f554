# Amounts for people. report.sh calls money, which is still to be written.

# group DIGITS: prints a whole number with commas between the thousands:
#   950 -> 950    1234567 -> 1,234,567
group() {
    rest=$1
    grouped=
    while [ ${#rest} -gt 3 ]; do
        front=${rest%???}
        grouped=,${rest#"$front"}$grouped
        rest=$front
    done
    echo "$rest$grouped"
}
