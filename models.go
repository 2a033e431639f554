package cadre

import (
	"cmp"
	"fmt"
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

// models finds the model for a name. It is set up once and then only read.
type models struct {
	name      string         // of the main session's model, as it is sent
	main      provider.Model // answers it
	api       string         // provider.Anthropic, provider.OpenAI, or "" for any other
	keySource string
	others    map[string]provider.Model // by API, for sub-agents with a model of another
}

// choose decides which model the main session has.
func (m *models) choose(cfg *Config, s config.Settings) error {
	getenv := func(name string) string {
		if value := cfg.Getenv(name); value != "" {
			return value
		}
		return s.Env[name]
	}
	name := cfg.Model
	if name == "" {
		name = s.Model
	}
	if name == "" {
		name = getenv("ANTHROPIC_MODEL")
	}
	m.keySource = "none"
	if cfg.Provider != nil {
		m.main, m.name = cfg.Provider, name
		return nil
	}
	if path, ok := strings.CutPrefix(name, scripted.Prefix); ok {
		return m.chooseScript(name, path)
	}
	if err := m.open(getenv, cfg, s); err != nil {
		return err
	}
	m.api = m.pickAPI(name)
	if m.api == "" {
		return fmt.Errorf("choose a model: %w", provider.ErrNoModel)
	}
	m.main = m.others[m.api]
	m.keySource = keySource(m.api, getenv)
	if name == "" {
		name = defaultAnthropic
		if m.api == provider.OpenAI {
			name = defaultOpenAI
		}
	}
	m.name = sent(name)
	return nil
}

func (m *models) chooseScript(name, path string) error {
	script, err := scripted.Load(path)
	if err != nil {
		return fmt.Errorf("load the model %s: %w", name, err)
	}
	main, err := script.Model()
	if err != nil {
		return fmt.Errorf("load the model %s: %w", name, err)
	}
	m.name, m.main = name, main
	return nil
}

// open makes a model for each API that the environment gives access to.
func (m *models) open(getenv func(string) string, cfg *Config, s config.Settings) error {
	m.others = make(map[string]provider.Model)
	agent := "cadre/" + cfg.Version
	retry, limits := outlast(s, cfg.Interactive), silence(s)
	key, token := getenv("ANTHROPIC_API_KEY"), getenv("ANTHROPIC_AUTH_TOKEN")
	if key != "" || token != "" {
		model, err := anthropic.New(anthropic.Options{
			BaseURL: getenv("ANTHROPIC_BASE_URL"), APIKey: key, AuthToken: token, UserAgent: agent, Retry: retry, Limits: limits,
		})
		if err != nil {
			return fmt.Errorf("set up Anthropic: %w", err)
		}
		m.others[provider.Anthropic] = model
	}
	// A local server needs an address, but often no key.
	if key, base := getenv("OPENAI_API_KEY"), getenv("OPENAI_BASE_URL"); key != "" || base != "" {
		model, err := openai.New(openai.Options{BaseURL: base, APIKey: key, UserAgent: agent, Retry: retry, Limits: limits})
		if err != nil {
			return fmt.Errorf("set up OpenAI: %w", err)
		}
		m.others[provider.OpenAI] = model
	}
	return nil
}

// outlast is for how long the models' servers may be away: as long as a person
// waits, who can interrupt it, and some minutes when nobody does.
func outlast(s config.Settings, person bool) provider.RetryPolicy {
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

// silence is how long the models' servers may say nothing.
func silence(s config.Settings) provider.Limits {
	const none = 365 * 24 * time.Hour
	return provider.Limits{FirstByte: cmp.Or(s.ModelFirstByte, none), Patience: cmp.Or(s.ModelSilence, none)}
}

// pickAPI says which API serves a model: the one the table names when there is
// access to it, else whichever there is access to, Anthropic's first. A name
// that the table does not know is taken for a model of an OpenAI-compatible
// server, unless it looks like Anthropic's.
func (m *models) pickAPI(name string) string {
	wanted := provider.Anthropic
	if info, known := provider.Lookup(name); known {
		wanted = info.API
	} else if name != "" && !strings.HasPrefix(name, "claude") {
		wanted = provider.OpenAI
	}
	for _, api := range []string{wanted, provider.Anthropic, provider.OpenAI} {
		if m.others[api] != nil {
			return api
		}
	}
	return ""
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

// named returns the model for a sub-agent or teammate, and the name to send:
// the main session's when name is "", or when it is one of the short names of
// an API that there is no access to.
func (m *models) named(name string) (provider.Model, string) {
	if name == "" || name == m.name || m.api == "" {
		return m.main, m.name
	}
	info, known := provider.Lookup(name)
	if !known {
		return m.main, name
	}
	if model := m.others[info.API]; model != nil {
		return model, info.ID
	}
	return m.main, m.name
}

// sent is the name of a model as its API knows it.
func sent(name string) string {
	if info, known := provider.Lookup(name); known {
		return info.ID
	}
	return name
}
