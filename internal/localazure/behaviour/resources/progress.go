package resources

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/template"
)

// progress is how far a deployment is that goes on.
type progress struct {
	known   behaviour.Object
	waiting map[string]bool // by key: resources that are not made yet
}

func progressOf(c *behaviour.Call) progress {
	known := behaviour.Object{}
	if kept := behaviour.Sub(c.Doc, progressField); kept != nil {
		known = kept
	}
	return progress{known, map[string]bool{}}
}

func (p progress) isMade(id azure.ID) bool { return p.known[id.Key()] == true }

// proceed begins to make a resource, or looks after one while its operation goes on.
func (p progress) proceed(c *behaviour.Call, s *source, t *template.Template, r *template.Resource) error {
	var err error
	if p.known[r.ID.Key()] == false {
		err = c.Outcome(r.ID)
	} else {
		err = makeResource(c, s, t, r)
	}
	if behaviour.GoesOn(err) {
		p.known[r.ID.Key()], p.waiting[r.ID.Key()] = false, true
		return err
	}
	p.known[r.ID.Key()] = err == nil
	return err
}

// keep records the progress until the deployment is looked after again.
func (p progress) keep(c *behaviour.Call) error {
	c.Doc[progressField] = p.known
	return behaviour.Later()
}
