#!/bin/sh
# Runs every test below tests/ and prints one line per check. Exits 1 when one
# of them fails. Needs nothing but sh.

case $0 in
*/*) cd "${0%/*}" || exit 2 ;;
esac

passed=0
failed=0

# show NAME OUTPUT: prints and counts the lines of one test.
show() {
    while read -r word rest; do
        case $word in
        ok) passed=$((passed + 1)) ;;
        FAIL) failed=$((failed + 1)) ;;
        *)
            [ -z "$word$rest" ] || echo "      $word $rest"
            continue
            ;;
        esac
        printf '%-5s %-7s %s\n' "$word" "$1" "$rest"
    done <<END
$2
END
}

for file in tests/*.sh; do
    name=${file#tests/}
    name=${name%.sh}
    [ "$name" != assert ] || continue
    output=$(sh "$file" 2>&1)
    status=$?
    before=$failed
    show "$name" "$output"
    if [ $status -ne 0 ] && [ "$failed" -eq "$before" ]; then
        show "$name" "FAIL the test broke off with status $status"
    fi
done

echo
if [ "$failed" -gt 0 ]; then
    echo "$failed of $((passed + failed)) checks fail"
    exit 1
fi
echo "all $passed checks pass"
