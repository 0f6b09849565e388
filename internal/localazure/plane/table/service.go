package table

import (
	"net/http"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/account"
)

// stats answers with the state of the secondary location.
func (c *call) stats() error { return account.ReplyStatistics(c.out, c.secondary, c.now) }

// settings answers with the settings of the service.
func (c *call) settings() error {
	var doc behaviour.Object
	c.service.Azure.Look(func(w behaviour.World) { doc, _ = w.Get(c.services) })
	all, err := account.SettingsOf(doc)
	if err != nil {
		return err
	}
	account.Reply(c.out, http.StatusOK, all)
	return nil
}

// setSettings changes the settings of the service that the request has.
func (c *call) setSettings() error {
	var given account.Settings
	if err := account.ReadSettings(c.out, c.r, &given); err != nil {
		return err
	}
	if err := given.Keep(c.service.Azure, c.services); err != nil {
		return err
	}
	c.out.status = http.StatusAccepted
	return nil
}
