package local

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator"
	"kaz/internal/emulator/providers"
)

// AzureView reads a running local Azure for a person, and writes what he puts there.
type AzureView struct {
	info   AzureInfo
	client *http.Client
}

// ViewAzure opens a view; Close it.
func ViewAzure(info AzureInfo) (*AzureView, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if info.CAFile != "" {
		text, err := os.ReadFile(info.CAFile)
		if err != nil {
			return nil, fmt.Errorf("certificate authority of the local Azure: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("certificate authority of the local Azure: no certificate in %s", info.CAFile)
		}
	}
	return &AzureView{info: info, client: &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}, // no proxy: it is on this machine
	}}, nil
}

// Close ends the view's connections.
func (v *AzureView) Close() { v.client.CloseIdleConnections() }

// viewVersion is an api-version; the local Azure takes any.
const viewVersion = "2025-05-01"

// failure is an answer that is an error.
type failure struct {
	status        int
	code, message string
}

func (f *failure) Error() string { return fmt.Sprintf("%s: %s (%d)", f.code, f.message, f.status) }

// read does a GET of a path, or of a link to a further page.
func (v *AzureView) read(ctx context.Context, link string, into any) error {
	return v.ask(ctx, http.MethodGet, link, nil, into)
}

func (v *AzureView) ask(ctx context.Context, method, link string, document []byte, into any) error {
	if strings.HasPrefix(link, "/") {
		link = v.info.ARM + (&url.URL{Path: link, RawQuery: "api-version=" + viewVersion}).String()
	}
	r, err := http.NewRequestWithContext(ctx, method, link, bytes.NewReader(document))
	if err != nil {
		return err
	}
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+v.info.Token)
	r.Header.Set("User-Agent", "kaz-local-azure")
	resp, err := v.client.Do(r)
	if err != nil {
		return fmt.Errorf("ask the local Azure: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask the local Azure: %w", err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		var body struct {
			Error struct{ Code, Message string } `json:"error"`
		}
		if json.Unmarshal(text, &body) != nil || body.Error.Code == "" {
			body.Error.Code, body.Error.Message = "HTTP", resp.Status
		}
		return &failure{resp.StatusCode, body.Error.Code, body.Error.Message}
	}
	return json.Unmarshal(text, into)
}

// Put makes or replaces a resource, and returns it when Azure has made it.
func (v *AzureView) Put(ctx context.Context, id string, document []byte) (map[string]any, error) {
	if _, err := azure.ParseID(id); err != nil {
		return nil, err
	}
	if err := v.ask(ctx, http.MethodPut, id, document, &map[string]any{}); err != nil {
		return nil, err
	}
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		doc := map[string]any{}
		if err := v.read(ctx, id, &doc); err != nil {
			return nil, err
		}
		properties, _ := doc["properties"].(map[string]any)
		switch state, _ := properties["provisioningState"].(string); state {
		case "Creating", "Updating":
		case "Failed", "Canceled":
			return nil, fmt.Errorf("%s: the local Azure says %s", id, state)
		default:
			return doc, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lookAgain is how often a resource that is being made is looked at.
const lookAgain = 200 * time.Millisecond

func (v *AzureView) pages(ctx context.Context, path string) ([]map[string]any, error) {
	var all []map[string]any
	for link := path; link != ""; {
		var page struct {
			Value    []map[string]any `json:"value"`
			NextLink string           `json:"nextLink"`
		}
		if err := v.read(ctx, link, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Value...)
		link = page.NextLink
	}
	return all, nil
}

// Resources are the documents of a type, or of all types that are not part of
// another resource. A type is named in full or by its end: "loadBalancers",
// "virtualMachineScaleSets/virtualMachines".
func (v *AzureView) Resources(ctx context.Context, name string) (Resources, error) {
	types, err := knownTypes()
	if err != nil {
		return nil, err
	}
	if name != "" {
		full, err := findType(types, name)
		if err != nil {
			return nil, err
		}
		return v.ofType(ctx, full)
	}
	var all Resources
	for _, t := range types {
		if strings.Count(t, "/") > 1 {
			continue
		}
		found, err := v.ofType(ctx, t)
		if _, refused := errors.AsType[*failure](err); refused {
			continue // a type that cannot be listed in a subscription
		}
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(found, func(doc map[string]any) bool { return !isMade(doc) })...)
	}
	return all, nil
}

// isMade tells what somebody created from what is always there, like the built-in
// roles.
func isMade(doc map[string]any) bool {
	text, _ := doc["id"].(string)
	id := azure.ID(text)
	return id.Group() != "" || id.Is("Microsoft.Authorization/roleAssignments")
}

// ofType lists a type in the subscription; of a sub-resource, in every parent.
func (v *AzureView) ofType(ctx context.Context, full string) (Resources, error) {
	subscription := string(azure.SubscriptionID(v.info.Subscription))
	if strings.EqualFold(full, groupType) {
		return v.pages(ctx, subscription+"/resourceGroups")
	}
	if strings.Count(full, "/") == 1 {
		return v.pages(ctx, subscription+"/providers/"+full)
	}
	cut := strings.LastIndexByte(full, '/')
	parents, err := v.ofType(ctx, full[:cut])
	if err != nil {
		return nil, err
	}
	var all Resources
	for _, p := range parents {
		id, _ := p["id"].(string)
		found, err := v.pages(ctx, id+full[cut:])
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

const groupType = "Microsoft.Resources/resourceGroups"

func knownTypes() ([]string, error) {
	e, err := emulator.New(emulator.Options{Providers: providers.All()})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range e.Types() {
		names = append(names, t.Name)
	}
	return names, nil
}

// findType finds a type by its name or its end, in any case.
func findType(types []string, name string) (string, error) {
	var found []string
	for _, t := range types {
		if strings.EqualFold(t, name) {
			return t, nil
		}
		if strings.HasSuffix(strings.ToLower(t), "/"+strings.ToLower(name)) {
			found = append(found, t)
		}
	}
	// The shortest is the one that is no part of another resource.
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")) })
	switch {
	case len(found) == 0:
		return "", fmt.Errorf("type %q: the local Azure knows %s", name, strings.Join(types, ", "))
	case len(found) > 1 && strings.Count(found[0], "/") == strings.Count(found[1], "/"):
		return "", fmt.Errorf("type %q: say which is meant, %s", name, strings.Join(found, " or "))
	}
	return found[0], nil
}

// Show reads one resource: by its id, or by its name, alone or behind its type.
func (v *AzureView) Show(ctx context.Context, name string) (map[string]any, error) {
	if strings.HasPrefix(name, "/") {
		id, err := azure.ParseID(strings.TrimSuffix(name, "/"))
		if err != nil {
			return nil, err
		}
		var doc map[string]any
		return doc, v.read(ctx, string(id), &doc)
	}
	kind := ""
	if cut := strings.LastIndexByte(name, '/'); cut >= 0 {
		kind, name = name[:cut], name[cut+1:]
	}
	all, err := v.Resources(ctx, kind)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, doc := range all {
		if text, _ := doc["name"].(string); strings.EqualFold(text, name) {
			id, _ := doc["id"].(string)
			ids = append(ids, id)
		}
	}
	switch len(ids) {
	case 0:
		return nil, fmt.Errorf("there is no resource %q; kaz local azure list shows what there is", name)
	case 1:
		var doc map[string]any
		return doc, v.read(ctx, ids[0], &doc)
	}
	return nil, fmt.Errorf("several resources are called %q: %s", name, strings.Join(ids, ", "))
}

// Resources are documents of resources.
type Resources []map[string]any

// Write prints them as a table.
func (rs Resources) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, "TYPE\tNAME\tGROUP\tLOCATION\tSTATE"); err != nil {
		return err
	}
	for _, doc := range rs {
		text, _ := doc["id"].(string)
		id := azure.ID(text)
		location, _ := doc["location"].(string)
		properties, _ := doc["properties"].(map[string]any)
		state, _ := properties["provisioningState"].(string)
		group := id.Group()
		if id.Is(groupType) {
			group = ""
		}
		_, err := fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(id.Type(), "?"), namePath(id), dash(group), dash(location), dash(state))
		if err != nil {
			return err
		}
	}
	return t.Flush()
}

// namePath is a resource's name with those of the resources it is part of.
func namePath(id azure.ID) string {
	names := []string{id.Name()}
	for parent := id.Parent(); strings.Count(parent.Type(), "/") >= 1 && !parent.Is(groupType) && parent.Namespace() == id.Namespace() && parent.Subscription() != "" && parent.Group() != ""; parent = parent.Parent() {
		names = append(names, parent.Name())
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
