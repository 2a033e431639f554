// Package models decides which model answers a session: by the name that a flag, the
// settings or the environment give, and by which providers there is access to.
package models

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/anthropic"
	"github.com/cadre-dev/cadre/provider/openai"
	"github.com/cadre-dev/cadre/provider/scripted"
)

// The models that are used when nobody names one.
const (
	defaultAnthropic = "sonnet"
	defaultOpenAI    = "gpt-5.4"
)

// Options says what the choice depends on.
type Options struct {
	Name        string              // as a flag gives it; "": from the settings or the environment
	Provider    provider.Model      // answers every request instead of what the name stands for; may be nil
	Getenv      func(string) string // the environment; settings come after it
	Version     string              // cadre's own, which servers are told
	Interactive bool                // a person is in front, who can interrupt a wait
	Settings    config.Settings
	Past        string // the model that a resumed session had; used when nobody names one
	Dir         string // what the path of a script in Past is relative to
}

// Unnamed reports whether neither a flag nor the settings nor the environment name a
// model.
func (o Options) Unnamed() bool { return o.Provider == nil && o.named() == "" }

func (o Options) env(name string) string { return cmp.Or(o.Getenv(name), o.Settings.Env[name]) }

func (o Options) named() string { return cmp.Or(o.Name, o.Settings.Model, o.env("ANTHROPIC_MODEL")) }

// Choice is the main session's model, and the models that other sessions of the
// process may have. It does not change.
type Choice struct {
	Name      string // of the main session's model, as it is sent to the server
	KeySource string // the variable that its key came from; "none"

	main   provider.Model
	api    string                    // of main: provider.Anthropic, provider.OpenAI, or "" for any other
	others map[string]provider.Model // by API
}

// Choose decides which model the main session has. It makes no request. Errors:
// [provider.ErrNoModel] when there is access to none.
func Choose(o Options) (*Choice, error) {
	name := o.named()
	if o.Provider != nil {
		return &Choice{Name: name, KeySource: "none", main: o.Provider}, nil
	}
	if path, ok := strings.CutPrefix(name, scripted.Prefix); ok {
		return chooseScript(name, path)
	}
	if path, ok := strings.CutPrefix(o.Past, scripted.Prefix); ok && name == "" {
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Dir, path)
		}
		return chooseScript(o.Past, path)
	}
	c := &Choice{}
	if err := c.connect(o.env, o); err != nil {
		return nil, err
	}
	if name == "" && c.serves(o.Past) {
		name = o.Past
	}
	c.api = c.pickAPI(name)
	if c.api == "" {
		return nil, fmt.Errorf("choose a model: %w", provider.ErrNoModel)
	}
	c.main, c.KeySource = c.others[c.api], keySource(c.api, o.env)
	if name == "" {
		name = defaultAnthropic
		if c.api == provider.OpenAI {
			name = defaultOpenAI
		}
	}
	c.Name = idOf(name)
	return c, nil
}

func chooseScript(name, path string) (*Choice, error) {
	script, err := scripted.Load(path)
	if err != nil {
		return nil, fmt.Errorf("load the model %s: %w", name, err)
	}
	main, err := script.Model()
	if err != nil {
		return nil, fmt.Errorf("load the model %s: %w", name, err)
	}
	return &Choice{Name: name, KeySource: "none", main: main}, nil
}

// connect makes a model for each API that the environment gives access to.
func (c *Choice) connect(getenv func(string) string, o Options) error {
	c.others = make(map[string]provider.Model)
	agent := "cadre/" + o.Version
	retry, limits := retryPolicy(o.Settings, o.Interactive), silenceLimits(o.Settings)
	key, token := getenv("ANTHROPIC_API_KEY"), getenv("ANTHROPIC_AUTH_TOKEN")
	if key != "" || token != "" {
		model, err := anthropic.New(anthropic.Options{
			BaseURL: getenv("ANTHROPIC_BASE_URL"), APIKey: key, AuthToken: token, UserAgent: agent, Retry: retry, Limits: limits,
		})
		if err != nil {
			return fmt.Errorf("set up Anthropic: %w", err)
		}
		c.others[provider.Anthropic] = model
	}
	// A local server needs an address, but often no key.
	if key, base := getenv("OPENAI_API_KEY"), getenv("OPENAI_BASE_URL"); key != "" || base != "" {
		model, err := openai.New(openai.Options{BaseURL: base, APIKey: key, UserAgent: agent, Retry: retry, Limits: limits})
		if err != nil {
			return fmt.Errorf("set up OpenAI: %w", err)
		}
		c.others[provider.OpenAI] = model
	}
	return nil
}

// retryPolicy says for how long the models' servers may be away: as long as a person
// waits, who can interrupt it, and some minutes when nobody does.
func retryPolicy(s config.Settings, person bool) provider.RetryPolicy {
	policy := provider.RetryPolicy{For: s.ModelRetry}
	switch {
	case s.ModelRetry == 0:
		policy.For = -1
	case s.ModelRetry == config.RetryByDefault && person:
		policy.For = provider.Forever
	case s.ModelRetry == config.RetryByDefault:
		policy.For = provider.DefaultRetryFor
	}
	return policy
}

// silenceLimits says how long the models' servers may say nothing.
func silenceLimits(s config.Settings) provider.Limits {
	const none = 365 * 24 * time.Hour
	return provider.Limits{FirstByte: cmp.Or(s.ModelFirstByte, none), Patience: cmp.Or(s.ModelSilence, none)}
}

// pickAPI says which API serves a model: the one the table names when there is
// access to it, else whichever there is access to, Anthropic's first. A name
// that the table does not know is taken for a model of an OpenAI-compatible
// server, unless it looks like Anthropic's.
func (c *Choice) pickAPI(name string) string {
	wanted := provider.Anthropic
	if info, known := provider.Lookup(name); known {
		wanted = info.API
	} else if name != "" && !strings.HasPrefix(name, "claude") {
		wanted = provider.OpenAI
	}
	for _, api := range []string{wanted, provider.Anthropic, provider.OpenAI} {
		if c.others[api] != nil {
			return api
		}
	}
	return ""
}

// serves reports whether there is access to a model that was used before. A name that
// the table does not know may be that of any server.
func (c *Choice) serves(name string) bool {
	info, known := provider.Lookup(name)
	switch {
	case known:
		return c.others[info.API] != nil
	case strings.HasPrefix(name, "claude"):
		return c.others[provider.Anthropic] != nil
	}
	return name != ""
}

func keySource(api string, getenv func(string) string) string {
	for _, name := range map[string][]string{
		provider.Anthropic: {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"},
		provider.OpenAI:    {"OPENAI_API_KEY"},
	}[api] {
		if getenv(name) != "" {
			return name
		}
	}
	return "none"
}

// Named returns the model for a sub-agent or teammate, and the name to send:
// the main session's when name is "", or when it is one of the short names of
// an API that there is no access to.
func (c *Choice) Named(name string) (provider.Model, string) {
	if name == "" || name == c.Name || c.api == "" {
		return c.main, c.Name
	}
	info, known := provider.Lookup(name)
	if !known {
		return c.main, name
	}
	if model := c.others[info.API]; model != nil {
		return model, info.ID
	}
	return c.main, c.Name
}

// idOf is the name of a model as its API knows it.
func idOf(name string) string {
	if info, known := provider.Lookup(name); known {
		return info.ID
	}
	return name
}
