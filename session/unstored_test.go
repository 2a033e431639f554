package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// A session whose transcript takes nothing any more says so after several tries, and
// again nothing when a turn is done.
func TestASessionThatStoresNothingSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memLog{}
		var model scriptModel = func(_ context.Context, _ provider.Request, yield func(provider.Event, error) bool) {
			yield(reply(transcript.TextBlock("hello")), nil)
		}
		s := open(t, log, model, nil)
		log.breakWith(errors.New("no space left"))
		for n := range 8 {
			if err := s.State().Unstored; (err != nil) != (n >= 6) {
				t.Errorf("after %d tries within %d s: %v", n, n, err)
			}
			_ = s.Send(t.Context(), Text(Prompt, "hi"))
			<-time.After(time.Second)
			synctest.Wait()
		}
		if err := s.State().Unstored; err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("why: %v", err)
		}
		log.breakWith(nil)
		_ = s.Send(t.Context(), Text(Prompt, "hi"))
		<-time.After(time.Second)
		synctest.Wait()
		if err := s.State().Unstored; err != nil {
			t.Errorf("after a turn that is done: %v", err)
		}
		_ = s.Close(nil)
	})
}
