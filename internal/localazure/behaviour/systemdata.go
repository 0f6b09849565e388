package behaviour

import "time"

// Timestamp is a time as most providers write it in documents.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.0000000Z") }

// WriteSystemData writes into the document which principal made it and which changed it
// last.
func WriteSystemData(c *Call) {
	author, kind := c.Author()
	now := Timestamp(c.Now())
	data := Clone(Sub(c.Old, "systemData"))
	if data == nil {
		data = Object{"createdBy": author, "createdByType": kind, "createdAt": now}
	}
	data["lastModifiedBy"], data["lastModifiedByType"], data["lastModifiedAt"] = author, kind, now
	c.Doc["systemData"] = data
}

// Author is the id of the principal of the call, and its kind: "User" or "Application".
func (c *Call) Author() (id, kind string) {
	switch p := c.Caller.Principal; {
	case p == nil, p.ApplicationID == "" && p.ObjectID == "":
		return "owner@kaz.local", "User"
	case p.ApplicationID != "":
		return p.ApplicationID, "Application"
	default:
		return p.ObjectID, "User"
	}
}
