package table

import "kaz/internal/localazure/plane/account"

// statistics answers with how far the secondary location is behind.
func (c tablesCall) statistics() error { return account.ReplyStatistics(c.out, c.secondary, c.now) }

// settings answers with the settings of the service.
func (c tablesCall) settings() error {
	return account.ReplySettings(c.out, c.service.Azure, c.services)
}

// setSettings changes the settings of the service that the request has.
func (c tablesCall) setSettings() error {
	return account.ChangeSettings(c.out, c.r, c.service.Azure, c.services)
}
