package testkit

import "kaz/internal/emulator"

// WriteFaults returns the faults that a write can have, by name. "not applied" has no kind: Azure reports the write and
// does not apply it. The local Azure has no such fault, so tests put it before the local Azure.
func WriteFaults() map[string]emulator.Fault {
	return map[string]emulator.Fault{
		"crash":            {Fault: emulator.FaultCrash},
		"lost reply":       {Fault: emulator.FaultLost},
		"failed operation": {Fault: emulator.FaultOperation, Code: "InternalServerError"},
		"throttled":        {Fault: emulator.FaultError, Status: 429, RetryAfter: 7},
		"busy":             {Fault: emulator.FaultError, Status: 409, Code: "AnotherOperationInProgress"},
		"changed":          {Fault: emulator.FaultError, Status: 412},
		"broken":           {Fault: emulator.FaultError, Status: 500},
		"not applied":      {},
	}
}
