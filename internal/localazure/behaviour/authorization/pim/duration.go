package pim

import (
	"regexp"
	"strconv"
	"time"

	"kaz/internal/localazure/behaviour"
)

// isoDuration is a duration of ISO 8601 with days, hours, minutes and seconds, which is what the API has.
var isoDuration = regexp.MustCompile(`^P(?:(\d{1,5})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,5})M)?(?:(\d{1,5})S)?)?$`)

// endOf is when a schedule that starts at a time expires, and whether it does.
func endOf(start time.Time, expiration behaviour.Object) (time.Time, bool) {
	switch behaviour.Text(expiration, "type") {
	case "AfterDateTime":
		end, err := time.Parse(time.RFC3339, behaviour.Text(expiration, "endDateTime"))
		return end, err == nil
	case "AfterDuration":
		parts := isoDuration.FindStringSubmatch(behaviour.Text(expiration, "duration"))
		if parts == nil {
			return time.Time{}, false
		}
		const day = 24 * time.Hour
		for i, unit := range []time.Duration{day, time.Hour, time.Minute, time.Second} {
			n, _ := strconv.Atoi(parts[i+1]) // digits, or nothing
			start = start.Add(time.Duration(n) * unit)
		}
		return start, true
	}
	return time.Time{}, false
}
