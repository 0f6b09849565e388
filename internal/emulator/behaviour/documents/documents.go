// Package documents has resource types that are documents and nothing else: a client can create, read, change, list and delete
// them, and they affect no other resource. Layer L2.
package documents

import (
	_ "embed"

	"kaz/internal/emulator/behaviour"
)

//go:embed types.txt
var table string

// Family is the name of the style of all these types, but for those of Microsoft.Network.
const Family = "documents"

// Provider has the types of the table.
func Provider() behaviour.Provider {
	return behaviour.Provider{Types: behaviour.Describe(table, styles(), nil)}
}

// styles are the combinations of what a PUT and a DELETE answer, by names such as "201a-200".
func styles() map[string]behaviour.Style {
	all := map[string]behaviour.Style{"network": behaviour.Network()}
	for put, write := range writes() {
		for del, remove := range removals() {
			s := behaviour.Plain(Family)
			s.Protocol = behaviour.ProviderOperations()
			s.Creating, s.Updating, s.Deleting = "Creating", "Updating", "Deleting"
			s.Overlap = behaviour.Queue
			s.Long = map[behaviour.Verb]behaviour.Headers{}
			write(&s)
			remove(&s)
			all[put+"-"+del] = s
		}
	}
	return all
}

type change = func(s *behaviour.Style)

// writes are what a PUT answers.
func writes() map[string]change {
	long := func(s *behaviour.Style) {
		s.Long[behaviour.Create], s.Long[behaviour.Update] = behaviour.AsyncOperation, behaviour.AsyncOperation
	}
	return map[string]change{
		"200":  func(s *behaviour.Style) { s.Created = 200 },
		"201":  func(*behaviour.Style) {},
		"200a": func(s *behaviour.Style) { s.Created = 200; long(s) },
		"201a": long,
		"202a": func(s *behaviour.Style) { s.Created, s.Updated = 202, 202; long(s) },
	}
}

// removals are what a DELETE answers.
func removals() map[string]change {
	return map[string]change{
		"200": func(*behaviour.Style) {},
		"204": func(s *behaviour.Style) { s.Deleted = 204 },
		"202a": func(s *behaviour.Style) {
			s.Deleted = 202
			s.Long[behaviour.Delete] = behaviour.AsyncOperation | behaviour.Location
		},
	}
}
