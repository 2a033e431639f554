package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/proc"
	"github.com/cadre-dev/cadre/models"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/scripted"
)

// keys are the variables that hold a key, and the API that each opens.
var keys = []struct{ name, api string }{
	{"ANTHROPIC_API_KEY", provider.Anthropic}, {"ANTHROPIC_AUTH_TOKEN", provider.Anthropic}, {"OPENAI_API_KEY", provider.OpenAI},
}

// endpoints are where the APIs are, unless a variable says otherwise.
var endpoints = map[string]struct{ variable, address string }{
	provider.Anthropic: {"ANTHROPIC_BASE_URL", "https://api.anthropic.com"},
	provider.OpenAI:    {"OPENAI_BASE_URL", "https://api.openai.com/v1"},
}

// checkOfModel is the name of the check without which no agent can work.
const checkOfModel = "model"

// checkModel looks for a key, of which it shows nothing, not even a part.
func (x *examination) checkModel() finding {
	var present []string
	for _, k := range keys {
		if x.getenv(k.name) == "" {
			continue
		}
		from := "environment"
		if os.Getenv(k.name) == "" {
			from = x.settings.From("env." + k.name).String()
		}
		present = append(present, fmt.Sprintf("%s is set (%s)", k.name, from))
	}
	switch {
	case len(present) > 0:
		return finding{checkOfModel, good, strings.Join(append(present, x.modelInUse()), ", "), ""}
	case strings.HasPrefix(x.settings.Model, scripted.Prefix):
		return finding{checkOfModel, good, "a script answers: " + x.settings.Model, ""}
	case x.getenv("OPENAI_BASE_URL") != "":
		return finding{checkOfModel, good, "OPENAI_BASE_URL is set, without a key, " + x.modelInUse(), ""}
	}
	return finding{checkOfModel, bad, "no key", "Set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or OPENAI_API_KEY (and OPENAI_BASE_URL), or have a script answer: cadre --model scripted:FILE. cadre demo needs none."}
}

// modelInUse names the model that a run without --model would have.
func (x *examination) modelInUse() string {
	choice, err := models.Choose(models.Options{Getenv: x.getenv, Settings: x.settings.Settings})
	if err != nil {
		return err.Error()
	}
	return "the model is " + choice.Name
}

// checkEndpoints makes one request without a key to each API in use: any answer
// will do.
func (x *examination) checkEndpoints(ctx context.Context) []finding {
	var findings []finding
	for _, api := range []string{provider.Anthropic, provider.OpenAI} {
		if !x.uses(api) {
			continue
		}
		at := endpoints[api]
		if set := x.getenv(at.variable); set != "" {
			at.address = set
		}
		findings = append(findings, x.checkEndpoint(ctx, at.variable, at.address))
	}
	return findings
}

func (x *examination) uses(api string) bool {
	for _, k := range keys {
		if k.api == api && x.getenv(k.name) != "" {
			return true
		}
	}
	return x.getenv(endpoints[api].variable) != ""
}

// endpointPatience is how long an API may take to answer anything at all.
const endpointPatience = 5 * time.Second

func (x *examination) checkEndpoint(ctx context.Context, variable, address string) finding {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return finding{"endpoint", bad, fmt.Sprintf("%s is not the address of a server", variable), "An address looks like https://host/path."}
	}
	if x.offline {
		return finding{"endpoint", good, u.Host + " (not tried)", ""}
	}
	ctx, cancel := context.WithTimeout(ctx, endpointPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), http.NoBody)
	if err != nil {
		return finding{"endpoint", bad, u.Host + ": " + plainError(err), ""}
	}
	started := time.Now()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return finding{"endpoint", bad, u.Host + " cannot be reached: " + plainError(err), "Check the connection, HTTPS_PROXY, and " + variable + "."}
	}
	resp.Body.Close()
	return finding{"endpoint", good, fmt.Sprintf("%s answers (%d ms)", u.Host, time.Since(started).Milliseconds()), ""}
}

// plainError is an error of a request without the address, which may hold a
// password.
func plainError(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", endpointPatience)
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "no address for its name"
	}
	return err.Error()
}

// programPatience is how long a program may take to print its version.
const programPatience = 5 * time.Second

// checkPrograms looks for the programs that agents and cadre itself run.
func checkPrograms(ctx context.Context) []finding {
	var findings []finding
	for _, p := range []struct {
		name, flag, without string
		missing             status
	}{
		{"git", "--version", "Agents cannot look at changes, and cadre demo does not run.", bad},
		{"rg", "--version", "Grep and Glob use cadre's own search, which is slower.", mild},
		{"tmux", "-V", "Teammates run in this process only.", mild},
	} {
		version, err := programVersion(ctx, p.name, p.flag)
		if err != nil {
			findings = append(findings, finding{p.name, p.missing, plainProgramError(err), p.without})
			continue
		}
		findings = append(findings, finding{p.name, good, version, ""})
	}
	return findings
}

func programVersion(ctx context.Context, name, flag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, programPatience)
	defer cancel()
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	exit, err := proc.Run(ctx, proc.Command{Path: path, Args: []string{name, flag}, Stdout: &out})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("%s %s ended with code %d", name, flag, exit.Code)
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	return strings.TrimSpace(first), err
}

func plainProgramError(err error) string {
	if errors.Is(err, exec.ErrNotFound) {
		return "not found"
	}
	return err.Error()
}

// checkRoot writes a file into the state root, which it makes only for a moment
// when there is none.
func (x *examination) checkRoot() finding {
	_, err := os.Stat(string(x.root))
	fresh := errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(string(x.root), layout.DirMode); err != nil {
		return finding{"state", bad, err.Error(), "Make it writable, or set CADRE_HOME to another folder."}
	}
	f, err := os.CreateTemp(string(x.root), ".doctor-*")
	if err != nil {
		return finding{"state", bad, err.Error(), "Make it writable, or set CADRE_HOME to another folder."}
	}
	f.Close()
	os.Remove(f.Name())
	if fresh {
		os.Remove(string(x.root))
		return finding{"state", good, string(x.root) + " (will be made)", ""}
	}
	return finding{"state", good, string(x.root), ""}
}

func (x *examination) checkSettings() finding {
	if len(x.warnings) == 0 {
		files := make([]string, len(x.settings.Layers))
		for i, l := range x.settings.Layers {
			files[i] = cmp.Or(l.Path, l.String())
			if rel, err := filepath.Rel(x.cwd, files[i]); err == nil && !strings.HasPrefix(rel, "..") {
				files[i] = rel
			}
		}
		return finding{"settings", good, cmp.Or(strings.Join(files, ", "), "none"), ""}
	}
	texts := make([]string, len(x.warnings))
	for i, w := range x.warnings {
		texts[i] = w.String()
	}
	return finding{"settings", mild, strings.Join(texts, "; "), ""}
}
