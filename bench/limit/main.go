// Command limit is the yardstick: the least that a Go program can do for the
// same work. It posts requests of given sizes to a model's streaming endpoint,
// reads each answer to its end, appends a line to a file, and forks the command
// that a tool call would fork. It understands nothing and keeps nothing, so
// whatever cadre takes beyond it is the price of what cadre does.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

// plan is what to do, read from a file that the harness writes after it has
// watched cadre do the same work.
type plan struct {
	URL     string   `json:"url"`     // of the streaming endpoint
	Command []string `json:"command"` // forked after each answer but the last; none when empty
	Sizes   []int    `json:"sizes"`   // bytes of each request's body
	AtOnce  int      `json:"atOnce"`  // how many requests after the first are made together; 0: each alone
	Lines   []int    `json:"lines"`   // bytes that each round appends to the log
	Log     string   `json:"log"`     // the file that stands for the transcript
}

func main() {
	file := flag.String("plan", "", "the plan, a JSON file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *file)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "limit:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var p plan
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("read the plan %s: %w", file, err)
	}
	log, err := os.OpenFile(p.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	var text string
	for from := 0; from < len(p.Sizes); {
		to := from + 1
		if from == 1 && p.AtOnce > 1 {
			to = min(from+p.AtOnce, len(p.Sizes))
		}
		if text, err = p.rounds(ctx, from, to, log); err != nil {
			return err
		}
		if from = to; from == len(p.Sizes) || len(p.Command) == 0 {
			continue
		}
		if out, err := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("command of round %d: %w: %s", from, err, out)
		}
	}
	_, err = fmt.Println(text)
	return err
}

// rounds makes requests together, each with its line in the log, and returns the
// last one's answer.
func (p plan) rounds(ctx context.Context, from, to int, log io.Writer) (string, error) {
	texts, errs := make([]string, to-from), make([]error, to-from)
	var asking sync.WaitGroup
	for i := from; i < to; i++ {
		asking.Go(func() {
			text, err := ask(ctx, p.URL, p.Sizes[i])
			if err == nil {
				_, err = log.Write(line(p.Lines, i))
			}
			if err != nil {
				err = fmt.Errorf("request %d: %w", i+1, err)
			}
			texts[i-from], errs[i-from] = text, err
		})
	}
	asking.Wait()
	return texts[len(texts)-1], errors.Join(errs...)
}

// ask posts a body of the given size and returns the text of the answer.
func ask(ctx context.Context, url string, size int) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body(size)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", "none")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", errors.New(res.Status)
	}
	return read(res.Body)
}

// body is a request that is valid for the mock model, padded to the size.
func body(size int) []byte {
	const head = `{"model":"mock","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"`
	const tail = `"}]}`
	pad := max(size-len(head)-len(tail), 0)
	return []byte(head + strings.Repeat("x", pad) + tail)
}

// read takes a stream of server-sent events to its end, decodes each, and joins
// the pieces of text.
func read(r io.Reader) (string, error) {
	var text strings.Builder
	events := bufio.NewScanner(r)
	events.Buffer(nil, 1<<20)
	for events.Scan() {
		data, ok := bytes.CutPrefix(events.Bytes(), []byte("data:"))
		if !ok {
			continue
		}
		var event struct {
			Type  string `json:"type"`
			Delta struct {
				Text string `json:"text"`
			} `json:"delta"`
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return "", fmt.Errorf("decode an event: %w", err)
		}
		text.WriteString(event.Delta.Text)
	}
	return text.String(), events.Err()
}

// line is what round i appends to the log.
func line(sizes []int, i int) []byte {
	size := 1
	if i < len(sizes) && sizes[i] > 0 {
		size = sizes[i]
	}
	return append(bytes.Repeat([]byte("x"), size-1), '\n')
}
