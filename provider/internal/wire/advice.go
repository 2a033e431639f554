package wire

import (
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/provider"
)

// Variables are the names under which the user has set what an API is reached
// with. Errors name them: they are what can be changed.
type Variables struct {
	BaseURL string
	Keys    []string // those in use; when none is, the one that could be
	NoKey   bool     // none of Keys is set
	Model   string   // "" when no variable names a model
}

// advice names what the user can check after a failure; "" when nothing can be
// done but wait.
func (e *Endpoint) advice(failure *provider.Error, refused bool) string {
	var check []string
	address := ""
	if e.ownURL {
		address = e.variables.BaseURL
	}
	switch {
	case failure.Class == provider.Auth && e.variables.NoKey:
		return " (set " + strings.Join(e.variables.Keys, " or ") + ")"
	case failure.Class == provider.Auth:
		check = append(check, e.variables.Keys...)
	case failure.Class == provider.ModelNotFound:
		check = append(check, "--model")
		if e.variables.Model != "" {
			check = append(check, e.variables.Model)
		}
		check = append(check, `"model" in the settings`)
		if address != "" {
			address += ", which leads to " + e.shownURL
		}
	case failure.Class == provider.Network && strings.Contains(failure.Message, proxy):
		return " (check HTTPS_PROXY)"
	case failure.Class == provider.Network && e.responds.Load():
		return "" // the address has proved right
	case failure.Class == provider.Network:
	case failure.Class == provider.Malformed && refused:
	default:
		return ""
	}
	if address != "" {
		check = append(check, address)
	}
	if len(check) == 0 {
		return ""
	}
	last := len(check) - 1
	if last == 0 {
		return fmt.Sprintf(" (check %s)", check[0])
	}
	return fmt.Sprintf(" (check %s or %s)", strings.Join(check[:last], ", "), check[last])
}
