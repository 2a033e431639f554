# The help.

# usage: prints it.
usage() {
    echo "usage: sh tally [options] LEDGER"
    echo "Adds up a ledger by category."
    echo
    echo "  --help           print this help and exit"
    echo "  --version        print the version and exit"
}
