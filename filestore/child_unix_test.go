//go:build unix

package filestore_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// childVariable makes the test binary a process that works on a store: a list
// of fields "root mode argument…".
const childVariable = "CADRE_TEST_CHILD"

func childEnv(fields ...string) []string {
	return append(os.Environ(), childVariable+"="+strings.Join(fields, " "))
}

// runAsChild does a child's work and exits, when a test started us for that. It
// prints a line for everything that the store acknowledged.
func runAsChild() {
	fields := strings.Fields(os.Getenv(childVariable))
	if len(fields) == 0 {
		return
	}
	ctx, root := context.Background(), layout.Root(fields[0])
	var err error
	switch fields[1] {
	case "repeat":
		err = repeatAndDie(ctx, root, fields[2], number(fields[3]), fields[4] == "true")
	case "post":
		err = postMany(ctx, root, fields[2], number(fields[3]))
	case "foreign":
		err = postAsForeign(root, fields[2], number(fields[3]))
	case "read":
		err = readUntilStopped(ctx, root)
	case "claim":
		err = workAsChild(ctx, root, fields[2], fields[3])
	case "seal":
		err = sealTogether(ctx, root, number(fields[2]))
	case "leave":
		err = leaveTogether(ctx, root, number(fields[2]))
	case "enter":
		err = enterTogether(ctx, root)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// repeatAndDie repeats an action until it is killed at the n-th call of the file layer
// that changes what is stored: before the call, or with half of it written. With n = 0
// it is not killed, and prints a line for each of these calls.
func repeatAndDie(ctx context.Context, root layout.Root, action string, n int, half bool) error {
	changes := 0
	faulty := &fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		if !c.Changes {
			return nil
		}
		changes++
		if n == 0 {
			fmt.Println("change", c.Op)
		}
		if n == 0 || changes != n {
			return nil
		}
		return &fsx.Fault{Short: half, Then: dieNow}
	}}
	s := filestore.New(root, filestore.WithFS(faulty))
	for i := 1; i <= killRounds; i++ {
		ack, err := everyKillAction()[action].act(ctx, s, i)
		if err != nil {
			return err
		}
		fmt.Println("ack", ack)
	}
	return nil
}

func postMany(ctx context.Context, root layout.Root, from string, n int) error {
	mail := filestore.New(root).Mail()
	for i := range n {
		if err := mail.Post(ctx, faultBox, post(from, strconv.Itoa(i), "", "2026-11-21T03:18:57.981Z", "")); err != nil {
			return err
		}
		fmt.Println("ack", i)
	}
	return nil
}
