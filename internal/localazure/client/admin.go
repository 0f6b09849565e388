package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"kaz/internal/localazure/core"
)

// AdminPath is the beginning of the paths of administrative requests.
const AdminPath = "/kaz/admin/"

// Status is what a running local Azure says of itself. It has nothing secret.
type Status struct {
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
	// Resources is the number of stored resources, of all types.
	Resources int            `json:"resources"`
	Latency   string         `json:"latency"`
	Throttle  string         `json:"throttle"`
	Quotas    map[string]int `json:"quotas,omitempty"`
	// Faults is the number of fault rules.
	Faults int `json:"faults"`
}

// Removed is the number of resources that a reset removed.
type Removed struct {
	Resources int `json:"resources"`
}

// Settings are changes of what a local Azure was started with. What is nil stays.
type Settings struct {
	Latency  *string  `json:"latency,omitempty"`
	Throttle *string  `json:"throttle,omitempty"`
	Quotas   []string `json:"quotas,omitempty"` // NAME=N
}

// Info returns the description of the local Azure.
func (c *Client) Info() Info { return c.info }

// Status asks a local Azure what it says of itself.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.admin(ctx, http.MethodGet, "status", nil, &s)
}

// Reset removes all resources.
func (c *Client) Reset(ctx context.Context) (r Removed, err error) {
	return r, c.admin(ctx, http.MethodPost, "reset", nil, &r)
}

// Set changes settings, all or none, and returns the new status.
func (c *Client) Set(ctx context.Context, change Settings) (s Status, err error) {
	return s, c.admin(ctx, http.MethodPatch, "settings", change, &s)
}

// Faults returns the fault rules in the order in which they are tried.
func (c *Client) Faults(ctx context.Context) ([]core.CountedFault, error) {
	return c.faults(ctx, http.MethodGet, "faults")
}

// AddFault adds a fault rule behind the others.
func (c *Client) AddFault(ctx context.Context, rule core.Fault) (added core.CountedFault, err error) {
	return added, c.admin(ctx, http.MethodPost, "faults", rule, &added)
}

// RemoveFault removes a fault rule, and returns those that remain.
func (c *Client) RemoveFault(ctx context.Context, id int) ([]core.CountedFault, error) {
	return c.faults(ctx, http.MethodDelete, "faults/"+strconv.Itoa(id))
}

// ClearFaults removes all fault rules, and returns them.
func (c *Client) ClearFaults(ctx context.Context) ([]core.CountedFault, error) {
	return c.faults(ctx, http.MethodDelete, "faults")
}

func (c *Client) faults(ctx context.Context, method, path string) ([]core.CountedFault, error) {
	var list struct{ Faults []core.CountedFault }
	return list.Faults, c.admin(ctx, method, path, nil, &list)
}

// admin sends an administrative request.
func (c *Client) admin(ctx context.Context, method, path string, body, into any) error {
	if c.info.AdminToken == "" {
		return fmt.Errorf("the administrative token of the local Azure at %s is unknown: only the user who started it has it, "+
			"and versions of kaz before this one have none", c.info.ARM)
	}
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	answer, err := c.sendAs(ctx, c.info.AdminToken, method, c.info.ARM+AdminPath+path, text)
	if err != nil {
		return fmt.Errorf("the local Azure at %s: %w", c.info.ARM, err)
	}
	return json.Unmarshal(answer.text, into)
}
