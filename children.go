package cadre

import (
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/session"
)

// addChild registers a sub-agent or an in-process teammate whose session has been
// opened. What it started is stopped with it; then gone is called.
func (r *Runtime) addChild(s *session.Session, started event.AgentStarted, stop <-chan struct{}, gone func()) (<-chan struct{}, error) {
	key := s.Caller().Key()
	return r.tree.Sessions.Add(session.Child{Session: s, Stop: stop, Gone: gone, Ended: func() {
		r.stopJobs(key)
		r.jobs.Disown(key)
	}}, started)
}

// stopJobs stops the jobs of an owner and waits for them.
func (r *Runtime) stopJobs(owner string) {
	for _, info := range r.jobs.Active(owner) {
		if j, ok := r.jobs.Job(info.ID); ok {
			j.Stop(session.ErrClosed)
			<-j.Done()
		}
	}
}
