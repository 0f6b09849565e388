// Package wire is the wire server of the local Azure, at 168.63.129.16. Machines read their goal state from the wire
// server, and report that their software has started. Layer L2.
//
// It serves what cloud-init and the beginning of the guest agent need: the versions, the goal state without certificates,
// and the health report.
package wire

import (
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/vm"
)

// Service answers requests of machines.
type Service struct {
	// Do gives access to the machines.
	Do  func(func(w behaviour.World) error) error
	Log *slog.Logger // nil is slog.Default
}

// version is the version of the protocol.
const version = "2015-04-05"

// Handler returns the handler of the requests of a machine.
func (s *Service) Handler(machine azure.ID) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, component := strings.Trim(r.URL.Path, "/"), strings.ToLower(r.URL.Query().Get("comp"))
		switch {
		case path == "" && component == "versions":
			reply(w, versions{Preferred: []string{version}, Supported: []string{version}})
		case path == "machine" && component == "goalstate" && r.Method == http.MethodGet:
			s.goalState(w, machine)
		case path == "machine" && component == "health" && r.Method == http.MethodPost:
			s.health(w, r, machine)
		default:
			http.NotFound(w, r)
		}
	})
}

type versions struct {
	XMLName   xml.Name `xml:"Versions"`
	Preferred []string `xml:"Preferred>Version"`
	Supported []string `xml:"Supported>Version"`
}

// goalState is what Azure wants of a machine.
type goalState struct {
	XMLName     xml.Name `xml:"GoalState"`
	Version     string   `xml:"Version"`
	Incarnation int      `xml:"Incarnation"`
	State       string   `xml:"Machine>ExpectedState"`
	Container   string   `xml:"Container>ContainerId"`
	Instance    string   `xml:"Container>RoleInstanceList>RoleInstance>InstanceId"`
	Wanted      string   `xml:"Container>RoleInstanceList>RoleInstance>State"`
}

func (s *Service) goalState(w http.ResponseWriter, machine azure.ID) {
	id := ""
	_ = s.Do(func(world behaviour.World) error {
		doc, _ := world.Get(machine)
		id = behaviour.Text(doc, "properties.vmId")
		return nil
	}) // it returns no error
	if id == "" {
		http.Error(w, "no such machine", http.StatusGone)
		return
	}
	reply(w, goalState{Version: version, Incarnation: 1, State: "Started", Container: id, Instance: id + "._" + machine.Name(),
		Wanted: "Started"})
}

// report is the health report of a machine.
type report struct {
	State       string `xml:"Container>RoleInstanceList>Role>Health>State"`
	Status      string `xml:"Container>RoleInstanceList>Role>Health>Details>SubStatus"`
	Description string `xml:"Container>RoleInstanceList>Role>Health>Details>Description"`
}

func (s *Service) health(w http.ResponseWriter, r *http.Request, machine azure.ID) {
	const most = 1 << 20
	var said report
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil {
		err = xml.Unmarshal(text, &said)
	}
	if err != nil {
		http.Error(w, "not a health report: "+err.Error(), http.StatusBadRequest)
		return
	}
	g := vm.Guest{State: vm.GuestReady}
	if said.State != "Ready" {
		g = vm.Guest{State: vm.GuestFailed, Message: strings.TrimSpace(said.Status + ": " + said.Description)}
	}
	if err := s.Do(func(world behaviour.World) error {
		if !world.Edit(machine, func(doc behaviour.Object) { vm.SetGuest(doc, g, world.Now()) }) {
			return fmt.Errorf("machine %s does not exist", machine)
		}
		return nil
	}); err != nil {
		http.Error(w, err.Error(), http.StatusGone)
		return
	}
	s.log().Info("machine reported its health", "machine", string(machine), "state", g.State, "message", g.Message)
}

func (s *Service) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}

func reply(w http.ResponseWriter, body any) {
	text, err := xml.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	_, _ = w.Write(append([]byte(xml.Header), text...)) // the client is gone
}
