package emulator

import (
	"time"

	"kaz/internal/emulator/behaviour"
)

// latency says how long requests and operations take.
type latency struct{}

func (latency) operation(*kind, behaviour.Verb) time.Duration { return 0 }
