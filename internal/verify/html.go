package verify

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// HTML prints a report as a page of its own.
func (r Report) HTML(w io.Writer) error { return page.Execute(w, r) }
