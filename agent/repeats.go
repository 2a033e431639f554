package agent

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/transcript"
)

// repeats counts rounds in a row that made the same calls and got the same results.
// A model that does so for long makes no progress and does not stop by itself.
type repeats struct {
	last  [sha256.Size]byte // of the last round's calls and results
	count int
}

// add counts a round, and returns how many equal ones there were in a row.
func (r *repeats) add(results []Result) int {
	h := sha256.New()
	part := func(p []byte) {
		_ = binary.Write(h, binary.LittleEndian, int64(len(p))) // writing to a hash does not fail
		h.Write(p)
	}
	for _, res := range results {
		part([]byte(res.Call.Name))
		part(res.Call.Input)
		part([]byte(res.Result.Text))
		blocks, _ := json.Marshal(res.Result.Blocks) // what cannot be written counts as nothing
		part(blocks)
	}
	var now [sha256.Size]byte
	h.Sum(now[:0])
	if now != r.last {
		r.last, r.count = now, 0
	}
	r.count++
	return r.count
}

// giveUp is how many times as often as [Turn.RepeatsNoted] the same round may come
// before the turn ends. Who waits for something by asking again and again gets there
// late: so many rounds take long.
const giveUp = 20

// afterRepeats reminds the model that it repeats itself, rarely, and ends the turn
// when nothing comes of that. It returns false when the consumer broke off.
func (r *run) afterRepeats(results []Result) (goesOn bool, err error) {
	n, note := r.repeats.add(results), r.RepeatsNoted
	failed := !slices.ContainsFunc(results, func(res Result) bool { return !res.Result.IsError })
	switch {
	case failed && n >= patience:
		return true, ErrStuck
	case note <= 0 || n < note:
		return true, nil
	case n >= note*giveUp:
		return true, fmt.Errorf("%w, %d times in a row", ErrRepeating, n)
	case n%note != 0 || n/note&(n/note-1) != 0: // at note, and at its double, again and again
		return true, nil
	}
	m := transcript.UserText(fmt.Sprintf("<system-reminder>\nThis was the same as in your last %d rounds: the same tool calls, with the same results. "+
		"Making them once more will change nothing. If you wait for something, wait longer before you ask again, or end your turn: "+
		"what comes in begins a new one. Else try another way, or say what stops you.\n</system-reminder>", n))
	if !r.yield(Note{m}) {
		return false, nil
	}
	r.add(m)
	return true, nil
}
