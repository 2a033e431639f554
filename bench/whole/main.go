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
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, *quick)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "whole:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, quick bool) (err error) {
	b, err := prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	short, long, mails := 21, 5, 200
	if quick {
		short, long, mails = 5, 1, 30
	}
	fmt.Printf("%s, %s\n\n", machine(), time.Now().Format(time.DateOnly))

	var rows []row
	for _, part := range []func() ([]row, error){
		func() ([]row, error) { return b.oneTurn(ctx, short) },
		func() ([]row, error) { return b.toolTurns(ctx, 200, long) },
		func() ([]row, error) {
			if quick {
				return nil, nil
			}
			return b.toolTurns(ctx, 1000, 1)
		},
		func() ([]row, error) { return b.mail(ctx, mails) },
		func() ([]row, error) { return b.binary(ctx, short) },
	} {
		more, err := part()
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	render(os.Stdout, rows)
	return nil
}

const mebibyte = 1 << 20

// pair runs both programs in turn, after one unmeasured round.
func (b *bench) pair(ctx context.Context, turns, times int) (ours, limits []run, err error) {
	for i := range times + 1 {
		a, err := b.runCadre(ctx, turns)
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
	ours, limits, err := b.pair(ctx, 0, times)
	if err != nil {
		return nil, err
	}
	return []row{
		ratio("one turn, whole process", collect(ours, whole), collect(limits, whole), 2),
		ratio("start to first request", collect(ours, first), collect(limits, first), 2),
		bytesWithin("peak memory after one turn", slices.Max(collect(ours, peak)), 40, mebibyte, "MiB"),
	}, nil
}

// window is how many turns around the one in question are looked at.
const window = 10

func (b *bench) toolTurns(ctx context.Context, turns, times int) ([]row, error) {
	ours, limits, err := b.pair(ctx, turns, times)
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
		rows = append(rows, above("a tool turn, at turn 10", around(ours, 10), around(limits, 10), 2*time.Millisecond))
	}
	rows = append(rows, above(fmt.Sprintf("a tool turn, at turn %d", turns), around(ours, turns), around(limits, turns), 2*time.Millisecond))
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
