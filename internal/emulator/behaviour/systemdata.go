package behaviour

import "time"

// Timestamp is a time as most providers write it in documents.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.0000000Z") }

// WriteSystemData says in the document who made it and who changed it last.
func WriteSystemData(c *Call) {
	who, kind := c.Author()
	now := Timestamp(c.Now())
	data := Clone(Sub(c.Old, "systemData"))
	if data == nil {
		data = Object{"createdBy": who, "createdByType": kind, "createdAt": now}
	}
	data["lastModifiedBy"], data["lastModifiedByType"], data["lastModifiedAt"] = who, kind, now
	c.Doc["systemData"] = data
}

// Author is who asks, and whether that is a "User" or an "Application".
func (c *Call) Author() (who, kind string) {
	switch p := c.Principal; {
	case p == nil, p.ApplicationID == "" && p.ObjectID == "":
		return "owner@kaz.local", "User"
	case p.ApplicationID != "":
		return p.ApplicationID, "Application"
	default:
		return p.ObjectID, "User"
	}
}
