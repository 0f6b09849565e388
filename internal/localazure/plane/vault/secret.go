package vault

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"kaz/internal/localazure/behaviour"
	resource "kaz/internal/localazure/behaviour/vault"
)

// bundle is a secret in a reply.
type bundle struct {
	Value       *string          `json:"value,omitempty"`
	ID          string           `json:"id"`
	ContentType string           `json:"contentType,omitempty"`
	Attributes  behaviour.Object `json:"attributes"`
	Tags        behaviour.Object `json:"tags,omitempty"`

	RecoveryID         string `json:"recoveryId,omitempty"`
	DeletedDate        int64  `json:"deletedDate,omitempty"`
	ScheduledPurgeDate int64  `json:"scheduledPurgeDate,omitempty"`
}

// show returns a version without its value, with how the vault would recover it.
func (c *call) show(v resource.Version) bundle {
	days, _ := resource.Retention(c.doc)
	attributes := behaviour.Clone(v.Attributes)
	attributes["recoveryLevel"], attributes["recoverableDays"] = resource.RecoveryLevel(c.doc), days
	return bundle{ID: v.ID, ContentType: v.ContentType, Attributes: attributes, Tags: v.Tags}
}

// find returns the version in the path, the current one for a path without a version.
func (c *call) find() (resource.Version, error) {
	name := c.secret.Name()
	if doc, there := c.Get(c.secret); there {
		versions := resource.Versions(doc)
		for i, v := range versions {
			if strings.EqualFold(v.Version, c.version) || c.version == "" && i == len(versions)-1 {
				return v, nil
			}
		}
		name += "/" + c.version
	}
	return resource.Version{}, refuse(http.StatusNotFound, "SecretNotFound", "A secret with (name/id) %s was not found in this key vault. "+
		"If you recently deleted this secret you may be able to recover it using the correct recovery command. For help resolving this "+
		"issue, please see https://go.microsoft.com/fwlink/?linkid=2125182", name)
}

func (c *call) get() (any, error) {
	v, err := c.find()
	if err != nil {
		return nil, err
	}
	if !v.Enabled {
		return nil, refuse(http.StatusForbidden, "Forbidden",
			"Operation get is not allowed on a disabled secret.").because("SecretDisabled")
	}
	shown := c.show(v)
	shown.Value = &v.Value
	return shown, nil
}

func (c *call) set() (any, error) {
	given, err := c.given()
	if err != nil {
		return nil, err
	}
	name := c.secret.Name()
	switch {
	case !resource.ValidName(name):
		return nil, bad("The request URI contains an invalid name: %s", name)
	case given.Value == nil:
		return nil, bad("The property value is missing.")
	}
	if _, deleted := resource.FindDeleted(c.doc, name, c.now); deleted {
		return nil, refuse(http.StatusConflict, "Conflict", resource.DeletedName, name).because("ObjectIsDeletedButRecoverable")
	}
	resource.SetSecret(c, c.vault, name, given)
	return c.current()
}

// current returns the current version with its value, also if it is disabled.
func (c *call) current() (any, error) {
	c.version = ""
	v, err := c.find()
	shown := c.show(v)
	shown.Value = &v.Value
	return shown, err
}

func (c *call) update() (any, error) {
	given, err := c.given()
	if err != nil {
		return nil, err
	}
	v, err := c.find()
	if err != nil {
		return nil, err
	}
	given.Value = nil
	resource.UpdateSecret(c, c.secret, v.Version, given)
	c.version = v.Version
	v, err = c.find()
	return c.show(v), err
}

// The limits of what a client sends.
const (
	largestBody        = 1 << 20
	largestValue       = 25 << 10
	longestContentType = 255
	mostTags           = 15
)

// given reads the body of a request.
func (c *call) given() (resource.Given, error) {
	var sent struct {
		Value, ContentType *string
		Attributes         struct {
			Enabled  *bool
			NBF, Exp *int64
		}
		Tags map[string]string
	}
	text, err := io.ReadAll(io.LimitReader(c.r.Body, largestBody))
	if err == nil {
		err = json.Unmarshal(text, &sent)
	}
	if err != nil {
		return resource.Given{}, bad("The request body is not valid: %v", err)
	}
	given := resource.Given{Value: sent.Value, ContentType: sent.ContentType, Attributes: behaviour.Object{}}
	if sent.Attributes.Enabled != nil {
		given.Attributes["enabled"] = *sent.Attributes.Enabled
	}
	for name, at := range map[string]*int64{"nbf": sent.Attributes.NBF, "exp": sent.Attributes.Exp} {
		if at != nil {
			given.Attributes[name] = *at
		}
	}
	if sent.Tags != nil {
		given.Tags = behaviour.Object{}
		for name, value := range sent.Tags {
			given.Tags[name] = value
		}
	}
	return given, check(given)
}

func check(given resource.Given) error {
	switch {
	case given.Value != nil && len(*given.Value) > largestValue:
		return bad("The value of the secret has %d bytes, at most %d are allowed.", len(*given.Value), largestValue)
	case given.ContentType != nil && len(*given.ContentType) > longestContentType, len(given.Tags) > mostTags:
		return bad("Property  has invalid value\r\n")
	}
	return nil
}

func (c *call) delete() (any, error) {
	if _, err := c.find(); err != nil {
		return nil, err
	}
	resource.DeleteSecret(c, c.secret)
	c.doc, _ = c.Get(c.vault)
	return c.getDeleted()
}
