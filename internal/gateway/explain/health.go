package explain

import "kaz/internal/plan/gateway/health"

// Health is the health of one backend as some settings reach it, by the names of the gateway's children.
type Health = health.Backend
