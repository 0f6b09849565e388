package testkit

import "kaz/internal/localazure/core"

// WriteFaults returns the faults that a write can have, by name. "not applied" has no kind: Azure reports the write and
// does not apply it. The local Azure has no such fault, so tests put it before the local Azure.
func WriteFaults() map[string]core.Fault {
	return map[string]core.Fault{
		"crash":            {Fault: core.FaultCrash},
		"lost reply":       {Fault: core.FaultLost},
		"failed operation": {Fault: core.FaultOperation, Code: "InternalServerError"},
		"throttled":        {Fault: core.FaultError, Status: 429, RetryAfter: 7},
		"busy":             {Fault: core.FaultError, Status: 409, Code: "AnotherOperationInProgress"},
		"changed":          {Fault: core.FaultError, Status: 412},
		"broken":           {Fault: core.FaultError, Status: 500},
		"not applied":      {},
	}
}
