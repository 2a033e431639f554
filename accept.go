package cadre

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/symlink"
	"github.com/cadre-dev/cadre/permission"
)

// scopes are the settings files that updates are meant for.
var scopes = map[string]config.Scope{
	ask.LocalSettings: config.Local, ask.ProjectSettings: config.Project, ask.UserSettings: config.User,
}

// acceptTime is how long others may be changing settings files then.
const acceptTime = 5 * time.Second

// gate is what stands around the calls of all sessions.
type gate struct{ *Runtime }

// Accept implements [session.Gate]. What is meant for a settings file is written in the
// process before which the person sat, and nowhere else: what comes by the mail of a
// team, however well it is vouched for, changes no file.
func (r gate) Accept(ctx context.Context, answer ask.Answer) ([]ask.Suggestion, error) {
	updates := make([]ask.Suggestion, len(answer.Updates))
	for i, u := range answer.Updates {
		updates[i] = u
		updates[i].Directories = r.folders(u.Directories)
	}
	if answer.Kept {
		return updates, nil
	}
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	var errs error
	for i, u := range updates {
		if u.Type == ask.RemoveDirectories { // files may spell them in another way
			u.Directories = slices.Concat(u.Directories, answer.Updates[i].Directories)
		}
		errs = errors.Join(errs, r.keepUpdate(ctx, u))
	}
	return updates, errs
}

// keepUpdate writes an update to the settings file that it is meant for, and tells
// the person. One without a file needs nothing.
func (r *Runtime) keepUpdate(ctx context.Context, u ask.Suggestion) error {
	scope, ok := scopes[u.Destination]
	if !ok {
		return nil
	}
	edit, err := editOf(u)
	var file string
	if err == nil {
		file, err = r.settingsFiles().Keep(ctx, scope, edit)
	}
	if err != nil {
		return fmt.Errorf("keep %s in the %s settings, so it counts for this session only: %w", u.Type, scope, err)
	}
	r.tree.Stream.Publish(r.leadAgent(), event.Noticed{Level: "info", Text: "changed " + file})
	return nil
}

// editOf is an update as an edit of a settings file.
func editOf(u ask.Suggestion) (config.Edit, error) {
	switch u.Type {
	case ask.AddRules, ask.ReplaceRules, ask.RemoveRules:
		return editOfRules(u)
	case ask.SetMode:
		if mode, err := permission.ParseMode(u.Mode); err != nil || mode == permission.Bypass {
			return config.Edit{}, errors.Join(err, fmt.Errorf("the mode %q is for a flag at the start", u.Mode))
		}
		return config.Edit{Mode: u.Mode}, nil
	case ask.AddDirectories:
		return config.Edit{List: config.FolderList, Add: u.Directories}, nil
	case ask.RemoveDirectories:
		return config.Edit{List: config.FolderList, Remove: u.Directories}, nil
	}
	return config.Edit{}, errors.ErrUnsupported
}

func editOfRules(u ask.Suggestion) (config.Edit, error) {
	if !slices.Contains([]string{config.AllowList, config.AskList, config.DenyList}, u.Behavior) {
		return config.Edit{}, fmt.Errorf("rules have no behavior %q", u.Behavior)
	}
	edit := config.Edit{List: u.Behavior, Clear: u.Type == ask.ReplaceRules}
	for _, named := range u.Rules {
		text := permission.Rule{Tool: named.ToolName, Content: named.RuleContent}.String()
		rule, err := permission.ParseRule(text)
		switch {
		case err != nil:
			return config.Edit{}, err
		case u.Type == ask.RemoveRules:
			edit.Remove = append(edit.Remove, text, rule.String(), rule.Tool+"(*)")
		default:
			edit.Add = append(edit.Add, rule.String())
		}
	}
	return edit, nil
}

// folders are the directories of an update as policies hold them.
func (r *Runtime) folders(dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(r.cfg.Cwd, dir)
		}
		out = append(out, symlink.Follow(dir))
	}
	return out
}

// acceptRelayed takes the rule changes of an answer that went to a teammate in
// another process: what is meant for this process's settings files is kept here, and
// counts for what the team asks from now on. The rest is the teammate's.
func (r *Runtime) acceptRelayed(ctx context.Context, answer ask.Answer) {
	if !answer.Allow {
		return
	}
	answer.Updates = slices.DeleteFunc(slices.Clone(answer.Updates), func(u ask.Suggestion) bool {
		_, ok := scopes[u.Destination]
		return !ok
	})
	if len(answer.Updates) == 0 {
		return
	}
	updates, err := gate{r}.Accept(ctx, answer)
	if err != nil {
		r.warn(err)
	}
	r.tree.Grant(slices.DeleteFunc(updates, func(u ask.Suggestion) bool { return u.Type == ask.SetMode }))
}
