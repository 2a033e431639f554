// Command whole measures the built cadre as a whole process against a minimal
// Go program ([../limit]) that makes requests of the same sizes to the same mock
// model, forks the same and writes as much. The two take turns in one run, so
// that what the machine does to one it does to the other; medians are compared.
// It prints a table and judges nothing: no test may depend on a clock.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 3 && os.Args[1] == launchVerb {
		if err := launch(os.Args[2], os.Args[3], os.Args[4:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	quick := flag.Bool("quick", false, "fewer repetitions, and no run of 1,000 turns")
	only := flag.String("only", "", "measure these `PARTS` only: "+strings.Join(partNames(), ","))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, *quick, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "whole:", err)
		os.Exit(1)
	}
}

// part is a table of figures.
type part struct {
	name    string
	columns [2]string // over the figures, and over what they are compared with
	measure func(ctx context.Context, b *bench, quick bool) ([]row, error)
}

// parts are all tables, in the order of a whole run.
var parts = []part{
	{"turns", [2]string{"cadre", "minimal program"}, turnRows},
	{"mail", [2]string{"cadre", "minimal program"}, mailRows},
	{"idle", [2]string{"with teammates", "with none"}, idleRows},
	{"spawn", [2]string{"cadre", "bare tmux"}, spawnRows},
	{"stores", [2]string{"large", "small"}, storeRows},
}

func partNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// chosen are the parts that a list names; all for "".
func chosen(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	names := strings.Split(only, ",")
	for _, name := range names {
		if !slices.Contains(partNames(), name) {
			return nil, fmt.Errorf("there is no part %q: want some of %s", name, strings.Join(partNames(), ","))
		}
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !slices.Contains(names, p.name) }), nil
}

func measure(ctx context.Context, quick bool, only string) (err error) {
	wanted, err := chosen(only)
	if err != nil {
		return err
	}
	b, err := prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	fmt.Printf("%s, %s\n", machine(), time.Now().Format(time.DateOnly))
	for _, p := range wanted {
		before := load()
		rows, err := p.measure(ctx, b, quick)
		if err != nil {
			return fmt.Errorf("measure %s: %w", p.name, err)
		}
		fmt.Printf("\n%s (load %s, then %s)\n\n", p.name, before, load())
		render(os.Stdout, p.columns, rows)
	}
	return nil
}

// turnRows compares whole runs with the minimal program's.
func turnRows(ctx context.Context, b *bench, quick bool) ([]row, error) {
	short, long := 21, 5
	if quick {
		short, long = 5, 1
	}
	rows, err := b.oneTurn(ctx, short)
	if err != nil {
		return nil, err
	}
	more, err := b.toolTurns(ctx, 200, long)
	if err != nil {
		return nil, err
	}
	rows = append(rows, more...)
	if more, err = b.subAgentsAtOnce(ctx, 64, long+short/2); err != nil {
		return nil, err
	}
	rows = append(rows, more...)
	if !quick {
		if more, err = b.toolTurns(ctx, 1000, 1); err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	more, err = b.binary(ctx, short)
	return append(rows, more...), err
}

// mailRows measures mail in one process and across two.
func mailRows(ctx context.Context, b *bench, quick bool) ([]row, error) {
	times := 200
	if quick {
		times = 30
	}
	rows, err := b.mail(ctx, times)
	if err != nil {
		return nil, err
	}
	more, err := b.mailAcross(ctx, times)
	return append(rows, more...), err
}

const mebibyte = 1 << 20

// pair runs both programs in turn, after one unmeasured round.
func (b *bench) pair(ctx context.Context, w work, times int) (ours, limits []run, err error) {
	for i := range times + 1 {
		a, err := b.runCadre(ctx, w)
		if err != nil {
			return nil, nil, err
		}
		l, err := b.runLimit(ctx, a)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 {
			ours, limits = append(ours, a), append(limits, l)
		}
	}
	return ours, limits, nil
}

// collect takes one figure of each run.
func collect[T any](runs []run, figure func(run) T) []T {
	figures := make([]T, len(runs))
	for i, r := range runs {
		figures[i] = figure(r)
	}
	return figures
}

func whole(r run) time.Duration { return r.Took }
func first(r run) time.Duration { return r.first() }
func peak(r run) int64          { return r.PeakRSS }

func (b *bench) oneTurn(ctx context.Context, times int) ([]row, error) {
	ours, limits, err := b.pair(ctx, work{}, times)
	if err != nil {
		return nil, err
	}
	return []row{
		ratio("one turn, whole process", collect(ours, whole), collect(limits, whole), 1.8),
		ratio("start to first request", collect(ours, first), collect(limits, first), 1.8),
		bytesWithin("peak memory after one turn", slices.Max(collect(ours, peak)), 40, mebibyte, "MiB"),
	}, nil
}

// subAgentsAtOnce measures a reply with many calls of Agent.
func (b *bench) subAgentsAtOnce(ctx context.Context, agents, times int) ([]row, error) {
	ours, limits, err := b.pair(ctx, work{agents: agents}, times)
	if err != nil {
		return nil, err
	}
	return []row{ratio(fmt.Sprintf("%d sub-agents in one reply, whole process", agents), collect(ours, whole), collect(limits, whole), 1.8)}, nil
}

// window is how many turns around the one in question are looked at.
const window = 10

func (b *bench) toolTurns(ctx context.Context, turns, times int) ([]row, error) {
	ours, limits, err := b.pair(ctx, work{turns: turns}, times)
	if err != nil {
		return nil, err
	}
	around := func(runs []run, n int) []time.Duration {
		var took []time.Duration
		for _, r := range runs {
			for i := max(n-window/2, 1); i <= min(n+window/2, turns); i++ {
				took = append(took, r.turn(i))
			}
		}
		return took
	}
	var rows []row
	if turns <= 200 {
		rows = append(rows, above("a tool turn, at turn 10", around(ours, 10), around(limits, 10), 500*time.Microsecond))
	}
	rows = append(rows, above(fmt.Sprintf("a tool turn, at turn %d", turns), around(ours, turns), around(limits, turns), 500*time.Microsecond))
	memory := bytesWithin(fmt.Sprintf("peak memory after %d tool turns", turns), slices.Max(collect(ours, peak)), 60, mebibyte, "MiB")
	if turns > 200 {
		memory.bound, memory.over = "", false // no bound is set for it
	}
	return append(rows, memory), nil
}

// binary looks at the program itself.
func (b *bench) binary(ctx context.Context, times int) ([]row, error) {
	info, err := os.Stat(b.cadre)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for range times {
		e, err := execute(ctx, program{path: b.cadre, args: []string{"--version"}, dir: b.dir, env: b.environment(b.dir)})
		if err != nil {
			return nil, err
		}
		took = append(took, e.Took)
	}
	return []row{
		within("cadre --version", took, 10*time.Millisecond),
		bytesWithin("stripped binary", info.Size(), 60, 1_000_000, "MB"),
	}, nil
}
