# What the tests share. They are run from the project's folder.

failed=0

# same WHAT WANT GOT: one check.
same() {
    if [ "$2" = "$3" ]; then
        echo "ok $1"
    else
        echo "FAIL $1: want '$2', got '$3'"
        failed=1
    fi
}

# has WHAT PART TEXT: one check that TEXT has PART in it.
has() {
    case $3 in
    *"$2"*) echo "ok $1" ;;
    *)
        echo "FAIL $1"
        failed=1
        ;;
    esac
}

# line NUMBER TEXT: prints one line of TEXT.
line() {
    number=0
    while IFS= read -r text; do
        number=$((number + 1))
        [ "$number" -ne "$1" ] || printf '%s\n' "$text"
    done <<END
$2
END
}
