# Every option that tally takes stands in its help and in the README.
. tests/assert.sh
. lib/usage.sh

readme=
while IFS= read -r text; do
    readme="$readme$text
"
done <README.md

while read -r word rest; do
    case $word in
    --*')')
        option=${word%')'}
        has "the help lists $option" " $option " "$(usage)"
        has "the README lists $option" "\`$option" "$readme"
        ;;
    esac
done <tally

exit $failed
