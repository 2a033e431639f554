package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/internal/symlink"
	"github.com/cadre-dev/cadre/permission"
)

// scopes are the settings files by the destination of a change.
var scopes = map[string]config.Scope{
	ask.LocalSettings: config.Local, ask.ProjectSettings: config.Project, ask.UserSettings: config.User,
}

// acceptTime bounds the wait for others that are changing a settings file.
const acceptTime = 5 * time.Second

// Approvals carries out the rule changes that come with a person's approvals. Its
// methods may be called from any goroutine, and may wait for files.
type Approvals struct {
	Files  config.Options    // which settings files are this process's
	Cwd    string            // the working folder, which relative folders are meant in
	Notify func(text string) // shows the person a line
}

// Accept writes the changes that are meant for settings files, and returns all as they
// hold in this process, also with an error (it is the session's gate for approvals).
// Files are written only by the process before which the person sat: what comes by the
// mail of a team, however well it is vouched for, changes no file.
func (a *Approvals) Accept(ctx context.Context, answer ask.Answer) ([]ask.Suggestion, error) {
	updates := make([]ask.Suggestion, len(answer.Updates))
	for i, u := range answer.Updates {
		updates[i] = u
		updates[i].Directories = a.resolved(u.Directories)
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
		errs = errors.Join(errs, a.store(ctx, u))
	}
	return updates, errs
}

// AcceptForTeam carries out the changes of an answer that went to a teammate in another
// process: what is meant for settings files is written here. It returns the changes that
// this process has to apply to itself; the rest is the teammate's.
func (a *Approvals) AcceptForTeam(ctx context.Context, answer ask.Answer) ([]ask.Suggestion, error) {
	if !answer.Allow {
		return nil, nil
	}
	answer.Updates = slices.DeleteFunc(slices.Clone(answer.Updates), func(u ask.Suggestion) bool {
		_, ok := scopes[u.Destination]
		return !ok
	})
	if len(answer.Updates) == 0 {
		return nil, nil
	}
	updates, err := a.Accept(ctx, answer)
	return slices.DeleteFunc(updates, func(u ask.Suggestion) bool { return u.Type == ask.SetMode }), err
}

// store writes a change into the settings file that it is meant for. One that is meant
// for no file needs nothing.
func (a *Approvals) store(ctx context.Context, u ask.Suggestion) error {
	scope, ok := scopes[u.Destination]
	if !ok {
		return nil
	}
	edit, err := editOf(u)
	var file string
	if err == nil {
		file, err = a.Files.Keep(ctx, scope, edit)
	}
	if err != nil {
		return fmt.Errorf("store %s in the %s settings, so it holds for this session only: %w", u.Type, scope, err)
	}
	a.Notify("changed " + file)
	return nil
}

// resolved are the directories of a change as policies hold them.
func (a *Approvals) resolved(dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		if dir != "" {
			out = append(out, symlink.Follow(inFolder(a.Cwd, dir)))
		}
	}
	return out
}

// editOf is a change as an edit of a settings file.
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
