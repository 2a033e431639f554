package permission

import (
	"path"
	"slices"
	"strings"
)

// areHarmless reports whether a prefix rule that names the first n words also
// covers the others. Whoever allows "git:*" means git, and not the program that
// one of git's options starts. So for programs that are known to run or write what
// their arguments name, only arguments that are known to be harmless are covered
// (facts: reliability-security §3.3: options are an allow-list, and programs with a
// language inside are never safe). For every other program the rule counts as it
// is written.
func areHarmless(words []string, n int) bool {
	program := path.Base(words[0])
	known, listed := harmless[program]
	if !listed {
		return !slices.Contains(carriers, program) && !slices.Contains(opaque, program)
	}
	if known.subcommands == nil {
		return known.options.cover(words[n:])
	}
	options, ok := known.subcommands[words[1]]
	if n > 1 { // the rule itself names the subcommand
		return options.cover(words[n:])
	}
	return ok && options.cover(words[2:])
}

// carriers run the command that their arguments name.
var carriers = append([]string{
	"sudo", "doas", "su", "env", "nice", "ionice", "nohup", "setsid", "stdbuf", "timeout", "time", "watch", "xargs", "parallel",
	"command", "builtin", "exec", "trap", "alias", "chroot", "unshare", "nsenter", "setarch", "strace", "ltrace", "script", "expect",
	"flock", "busybox", "toybox", "ssh", "at", "batch", "find", "fd",
}, shells...)

// shells are the carriers that run a whole script.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash", "eval", "source", "."}

// opaque programs have a language in their arguments that can write files or
// start programs, or options of that kind that cannot be listed.
var opaque = []string{"sed", "awk", "gawk", "mawk", "nawk", "tar", "bsdtar", "ps", "uniq"}

// arguments are what a listed program may be given, all over or by subcommand.
// A subcommand that is missing is covered by no rule that does not name it.
type arguments struct {
	options     options
	subcommands map[string]options
}

// options are those that neither run nor write anything named after them.
type options struct {
	letters string // single letters, which may stand together behind one dash, also with a number
	names   string // whole names with their dashes, separated by spaces
}

func (o options) cover(args []string) bool {
	for _, arg := range args {
		switch {
		case arg == "--":
			return true
		case strings.Contains(arg, "::"): // git runs the helper of "helper::address"
			return false
		case strings.HasPrefix(arg, "-") && arg != "-" && !o.has(arg):
			return false
		}
	}
	return true
}

func (o options) has(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	if slices.Contains(strings.Fields(o.names), name) {
		return true
	}
	cluster := arg[1:]
	return !strings.HasPrefix(cluster, "-") && strings.Trim(cluster, o.letters+"0123456789") == ""
}

// gitShow are the options of subcommands that show, gitWork those of subcommands
// that change the repository. Left out: what runs a program (-x of rebase, -O of
// grep, --upload-pack), writes elsewhere (--output) or reads a file into a
// message (-F).
var (
	gitShow = options{"abcehimnopqrstuvwzCDGLMSU", "--all --oneline --stat --numstat --shortstat --patch --no-patch --graph --decorate " +
		"--follow --reverse --name-only --name-status --cached --staged --merged --no-merged --contains --format --pretty --abbrev " +
		"--abbrev-commit --abbrev-ref --date --since --until --after --before --author --grep --max-count --first-parent --merges " +
		"--no-merges --word-diff --color --no-color --no-renames --find-renames --ignore-all-space --unified --exit-code --quiet --summary " +
		"--porcelain --short --branch --long --untracked-files --ignored --count --verify --show-toplevel --left-right --merge-base " +
		"--line-number --ignore-case --tags --stage --others --exclude-standard --modified --deleted --is-inside-work-tree"}
	gitWork = options{"abdflmnpqrvABD", "--all --amend --no-edit --message --signoff --allow-empty --update --intent-to-add --patch " +
		"--dry-run --verbose --quiet --force --force-with-lease --set-upstream --tags --follow-tags --delete --prune --ff-only --no-ff " +
		"--squash --abort --continue --skip --hard --soft --mixed --keep --staged --cached --worktree --source --ours --theirs --detach " +
		"--create --track --no-track --orphan --include-untracked --keep-index --list --onto --rebase --no-rebase --no-verify " +
		"--autostash --depth --single-branch --move --copy --show-current --remotes"}
	goFlags = options{"", "-v -x -n -p -a -race -run -skip -count -short -timeout -bench -benchmem -benchtime -cover -covermode -shuffle " +
		"-tags -json -parallel -failfast -cpu -list -mod -trimpath -m -e -f -deps -test"}
)

var harmless = map[string]arguments{
	"git": {subcommands: map[string]options{
		"status": gitShow, "log": gitShow, "diff": gitShow, "show": gitShow, "blame": gitShow, "grep": gitShow, "shortlog": gitShow,
		"rev-parse": gitShow, "rev-list": gitShow, "ls-files": gitShow, "ls-tree": gitShow, "describe": gitShow, "merge-base": gitShow,
		"cat-file": {"petsw", ""}, "reflog": gitShow, "version": {},
		"add": gitWork.and("uN"), "commit": gitWork.and("s"), "checkout": gitWork, "switch": gitWork.and("cC"), "restore": gitWork.and("sSW"),
		"reset": gitWork, "stash": gitWork.and("uk"), "tag": gitWork, "branch": gitWork.and("uMcC"), "merge": gitWork, "rebase": gitWork,
		"cherry-pick": gitWork.and("x"), "revert": gitWork, "mv": gitWork.and("k"), "rm": gitWork, "clean": gitWork.and("xX"),
		"push": gitWork.and("u"), "fetch": gitWork, "pull": gitWork, "clone": gitWork, "init": gitWork, "remote": gitWork,
	}},
	"go": {subcommands: map[string]options{
		"test": goFlags, "build": goFlags, "vet": goFlags, "list": goFlags, "fmt": goFlags, "version": goFlags, "mod": goFlags,
		"doc": {"", "-all -cmd -short -src -u -c"}, "env": {"", "-json"},
	}},
	"rg": {options: options{"ABCFHILNPSTUacdegilmnopqrstuvwx", "--files --glob --iglob --type --type-not --hidden --no-ignore " +
		"--ignore-case --smart-case --fixed-strings --line-number --no-heading --heading --count --count-matches --files-with-matches " +
		"--max-count --max-depth --context --before-context --after-context --multiline --only-matching --word-regexp --sort --json " +
		"--stats --color --no-messages"}},
	"find": {options: options{"", "-name -iname -path -ipath -wholename -regex -iregex -type -maxdepth -mindepth -depth -size -empty -mtime " +
		"-mmin -ctime -atime -newer -perm -user -group -not -a -and -o -or -print -print0 -prune -xdev -L -H -P"}},
	"fd":   {options: options{"HIaegitsuLdEp0", "--hidden --no-ignore --extension --type --glob --max-depth --absolute-path --exclude --full-path"}},
	"sort": {options: options{"bcdfghikMnrRstuVz", "--reverse --unique --numeric-sort --key --human-numeric-sort --version-sort --ignore-case"}},
	"tree": {options: options{"adfLIPhsDpi", "--gitignore --dirsfirst --noreport --prune"}},
}

func (o options) and(letters string) options {
	o.letters += letters
	return o
}
