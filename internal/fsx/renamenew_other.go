//go:build !linux && !darwin

package fsx

import "errors"

func renameNew(string, string) error { return errors.ErrUnsupported }
