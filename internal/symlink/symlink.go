// Package symlink follows symbolic links in paths, in one way for all: rules are
// compared with paths that tools resolved, so both must come to the same name.
package symlink

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many links a path may lead over, as in the system: more are a
// circle.
const maxLinks = 255

// Follow returns the path behind all symbolic links of an absolute path, component
// by component as the system does. It also follows links that lead to something
// that does not exist: a file that would be created through one is named by where
// it would be created. What cannot be examined stays as it is, and so does a path
// that is not absolute.
func Follow(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	volume := filepath.VolumeName(path)
	done, rest, links := volume+string(filepath.Separator), components(path[len(volume):]), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		target, ok := targetOf(next)
		if !ok || links == maxLinks {
			done = next
			continue
		}
		links++
		if filepath.IsAbs(target) {
			done = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(filepath.VolumeName(target)):]
		}
		rest = append(components(target), rest...)
	}
	return done
}

func components(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
}

func targetOf(path string) (string, bool) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		return "", false
	}
	target, err := os.Readlink(path)
	return target, err == nil
}
