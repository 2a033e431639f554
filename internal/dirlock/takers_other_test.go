//go:build !unix

package dirlock_test

import "errors"

func takeTurn(string) error { return errors.ErrUnsupported }
