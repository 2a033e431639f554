# cadre's watchdog: when cadre is gone, it ends what is left of the commands that
# cadre has run.
#
# usage: sh -c SCRIPT NAME BASE FILE 3<LIST
#
# The end of standard input says that cadre is gone. LIST then has a line for each
# run that was under way,
#
#	MARK [GROUP]
#
# What a run has started has its MARK, which is BASE.NUMBER., in its environment,
# also what has left a run that ended long ago; the program of a run that was under
# way leads the process group GROUP, if it was started. FILE, if any, is the name
# of LIST, and is removed. Up to the first kill no other program is needed, so that
# it comes when memory is short, too.

trap '' HUP INT QUIT TERM PIPE TSTP TTIN TTOU
base=$1 file=$2
[ ${#base} -eq 32 ] || exit 2 # an empty mark would be everybody's

while read -r _; do :; done

groups='' # MARK:GROUP ...
while read -r mark group; do
	case $mark in
	"$base".*.) [ "${group:-0}" -gt 1 ] && groups="$groups $mark:$group" ;;
	esac
done <&3

# foreign MARK GROUP: the group's number belongs to somebody else by now. As long
# as one of its processes lives, nobody else gets the number; so only its
# leader can be foreign: one that lives and has an environment without the
# mark. Where there is no /proc, none is held to be.
foreign() {
	env='' line=''
	while IFS= read -r line || [ -n "$line" ]; do
		env=$env$line
	done <"/proc/$2/environ"
	case $env in
	'' | *"$1"*) return 1 ;;
	esac
}

# send SIGNAL: to the groups, and to what left them with a mark of ours. It fails
# when there is nobody to send to.
send() {
	signal=$1 sent=1
	for entry in $groups; do
		group=${entry#*:}
		foreign "${entry%:*}" "$group" && continue
		kill -s "$signal" -- "-$group" && sent=0
	done
	for environ in $(grep -lF -e "$base." /proc/[0-9]*/environ); do
		pid=${environ#/proc/}
		kill -s "$signal" "${pid%/environ}" && sent=0
	done
	return $sent
}

if send TERM; then
	for _ in 1 2 3 4 5; do
		send 0 && sleep 0.1 || break
	done
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		send KILL && sleep 0.1 || break
	done
fi
[ -z "$file" ] || rm -f -- "$file"
