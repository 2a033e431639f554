package proc

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// underWay are the runs of this process.
var underWay runs

// runs puts this process into a job object with the first run. All that it
// starts from then on is in it too, and ends with the last handle to the job,
// which is ours: when this process dies, however it dies.
type runs struct{ job sync.Once }

type run struct{ mark string }

// begin joins the job. Where that cannot be, programs run all the same.
func (rs *runs) begin() *run {
	rs.job.Do(joinJob)
	return &run{}
}

func (*run) started(int) {}

func (*run) end() {}

// joinJob makes the job and leaves its handle open for the system to close; no
// program inherits it.
func joinJob() {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))) //nolint:gosec // the call takes the address of a structure, and its size
	if err == nil {
		err = windows.AssignProcessToJobObject(job, windows.CurrentProcess())
	}
	if err != nil {
		_ = windows.CloseHandle(job)
	}
}
