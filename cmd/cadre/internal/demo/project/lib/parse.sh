# Amounts as people write them.

# parse_amount TEXT: prints an amount in cents, as a plain integer:
#   12.34 -> 1234    7 -> 700    0.5 -> 50    -3.20 -> -320
# Prints nothing and returns 1 when TEXT is no amount.
parse_amount() {
    sign=
    amount=$1
    case $amount in
    -*)
        sign=-
        amount=${amount#-}
        ;;
    esac
    case $amount in
    '' | *[!0-9.]* | *.*.* | .* | *.) return 1 ;;
    esac
    units=${amount%.*}
    case $amount in
    *.*) cents=${amount#*.} ;;
    *) cents=00 ;;
    esac
    echo "$sign$((units * 100 + cents))"
}
