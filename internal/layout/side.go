package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
)

// TeamSide is a folder with what is ours alone about a team: "seals",
// "present", or a kind of records. It goes with the team's folder.
func (r Root) TeamSide(team, what string) string {
	return filepath.Join(r.TeamDir(team), "cadre", what)
}

// Seals is the file with the seals of one agent's inbox.
func (r Root) Seals(team, agent string) string {
	if team == "" {
		team = "default" // where Inbox puts such mail
	}
	return filepath.Join(r.TeamSide(team, "seals"), inboxName(agent)+".seals")
}

// Record is the file of a team's record.
func (r Root) Record(team, kind, name string) string {
	return filepath.Join(r.TeamSide(team, kind), FileName(name)+".json")
}

// Presence is the lease on an agent's place in a team.
func (r Root) Presence(team, agent string) string {
	return filepath.Join(r.TeamSide(team, "present"), FileName(agent)+".lease")
}

// LockQueue says where our processes queue for the lock of a file: in which file,
// below which folder.
func (r Root) LockQueue(target string) (below, file string) {
	below, rel := r.beside(target)
	return below, filepath.Join(below, ownFolder, "locks", rel)
}

// Damaged says where a file that cannot be used is kept, and below which folder; how
// the name ends is up to the caller. What lies in a folder of ours stays in that.
func (r Root) Damaged(path string) (below, aside string) {
	rel, err := filepath.Rel(string(r), path)
	if err == nil && slices.Contains(strings.Split(rel, string(filepath.Separator)), ownFolder) {
		return filepath.Dir(path), path + ".damaged"
	}
	below, rel = r.beside(path)
	return below, filepath.Join(below, ownFolder, "damaged", rel)
}

// ownFolder is the name of the folders with what is ours alone.
const ownFolder = "cadre"

// beside says below which folder what is ours about a file lies, and the file's name
// there. In a team's folder that is its own part of it. Of a task list it is under the
// root: every file in a list's folder is a task to those who list it.
func (r Root) beside(path string) (below, rel string) {
	below = string(r)
	rel, err := filepath.Rel(r.TeamsDir(), path)
	if err == nil && filepath.IsLocal(rel) {
		team, rest, _ := strings.Cut(rel, string(filepath.Separator))
		below, rel = filepath.Join(r.TeamsDir(), team), rest
	} else if rel, err = filepath.Rel(below, path); err != nil {
		rel = filepath.Base(path)
	}
	return below, strings.TrimPrefix(rel, ownFolder+string(filepath.Separator))
}

// OwnDir is the folder with what is ours alone and belongs to no team or
// session.
func (r Root) OwnDir() string { return r.join("cadre") }

// Key is the file with the key of our seals.
func (r Root) Key() string { return r.join("cadre", "key") }

// Accepted is the file with what a person has accepted of the settings of the
// project in this folder.
func (r Root) Accepted(project string) string {
	sum := sha256.Sum256([]byte(project)) // a slug can stand for two folders
	return filepath.Join(r.OwnDir(), "accepted", hex.EncodeToString(sum[:])+".json")
}

// AsksDir holds the open questions, and the answers that were left for them.
func (r Root) AsksDir() string { return r.join("cadre", "asks") }

// OpenAsk is the file of an open question.
func (r Root) OpenAsk(id string) string { return filepath.Join(r.AsksDir(), FileName(id)+".json") }

// AskAnswer is the file of the answer that was left for a question.
func (r Root) AskAnswer(id string) string {
	return filepath.Join(r.AsksDir(), FileName(id)+AnswerSuffix)
}

// AnswerSuffix ends the names of answers, and of no question.
const AnswerSuffix = ".answer.json"

// maxFileName leaves room for what is put around a name in a file system that
// takes 255 bytes.
const maxFileName = 180

// FileName spells any name so that it leaves no folder, is not hidden, and is
// that of no other name, also where the file system knows no case: everything
// but a–z, 0–9, dash and underscore becomes "%" and two digits per byte. What is
// too long ends with a digest instead.
func FileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
		if plain && !(i == 0 && isDevice(name)) {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + hex.EncodeToString([]byte{c}))
		}
	}
	if b.Len() <= maxFileName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	end := "~" + hex.EncodeToString(sum[:])
	return b.String()[:maxFileName-len(end)] + end
}

// NameOf is the name that [FileName] spelled; of one that is too long, how it
// begins.
func NameOf(file string) string {
	file, _, _ = strings.Cut(file, "~")
	var name []byte
	for i := 0; i < len(file); i++ {
		if file[i] == '%' && i+2 < len(file) {
			if c, err := hex.DecodeString(file[i+1 : i+3]); err == nil {
				name = append(name, c...)
				i += 2
				continue
			}
		}
		name = append(name, file[i])
	}
	return string(name)
}

// isDevice reports whether Windows takes a file of this name for a device,
// whatever its extension.
func isDevice(name string) bool {
	if len(name) == 4 && (strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt")) {
		return name[3] >= '0' && name[3] <= '9'
	}
	return slices.Contains([]string{"con", "prn", "aux", "nul"}, name)
}

// FinishedTeams is the folder with what is kept of the teams that a main session led
// and that were deleted: a state root for each. sessionFolder is the folder of that
// session in its project's, which it is removed with.
func FinishedTeams(sessionFolder string) string {
	return filepath.Join(sessionFolder, "cadre", "finished")
}
