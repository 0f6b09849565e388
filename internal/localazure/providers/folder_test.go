package providers_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
	"kaz/internal/template/lenient"
)

// folder has templates NAME.json of other people, which are not in this repository. NAME.parameters.json are the parameters of a
// template, and NAME.before.json is a template that is deployed before it.
var folder = flag.String("templates", "", "the folder with the templates of TestTemplatesOfAFolder")

// asItShouldBe is the verdict of a template that deploys, deploys again without a change, and has no change in what-if then.
const asItShouldBe = "as it should be"

// TestTemplatesOfAFolder validates and deploys each template of a folder, deploys it again, which changes nothing, and asks what-if, which
// says nothing. It prints a table: a line for each template.
func TestTemplatesOfAFolder(t *testing.T) {
	if *folder == "" {
		t.Skip("no -templates")
	}
	files, err := filepath.Glob(filepath.Join(*folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates in %s: %v", *folder, err)
	}
	counts, total := map[string]int{}, 0
	for _, name := range files {
		if strings.HasSuffix(name, ".parameters.json") || strings.HasSuffix(name, ".before.json") {
			continue
		}
		title := strings.TrimSuffix(filepath.Base(name), ".json")
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				verdict, why := tryTemplate(t, strings.TrimSuffix(name, ".json"))
				counts[verdict]++
				total++
				if verdict != asItShouldBe {
					t.Errorf("%s: %s", verdict, why)
				}
			})
		})
	}
	t.Logf("%d templates: %v", total, counts)
}

// tryTemplate says how far a template gets, and what is wrong then.
func tryTemplate(t *testing.T, base string) (verdict, why string) {
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	send(e, "PUT", group, `{"location":"eastus"}`)
	if before, err := os.ReadFile(base + ".before.json"); err == nil {
		path := group + "/providers/Microsoft.Resources/deployments/before"
		status, reply := send(e, "PUT", path, deploymentOf(t, string(before)))
		if fault := failureOf(e, path); status >= 300 || fault != "" {
			return "the template before", fmt.Sprint(status, reply, fault)
		}
	}
	path, body := requestFor(t, base)
	return judged(t, e, path, body)
}

// judged validates and deploys a template, deploys it again, and asks what-if.
func judged(t *testing.T, e *core.Emulator, path, body string) (verdict, why string) {
	if status, reply := send(e, "POST", path+"/validate", body); status >= 300 {
		return "refused by validate", fmt.Sprint(status, reply)
	}
	status, _ := send(e, "PUT", path, body)
	if fault := failureOf(e, path); status >= 300 || fault != "" {
		return "refused", fmt.Sprint(status, fault)
	}
	first := all(e, path)
	<-time.After(time.Hour)
	send(e, "PUT", path, body)
	if fault := failureOf(e, path); fault != "" {
		return "refused the second time", fault
	}
	if diff := cmp.Diff(first, all(e, path)); diff != "" {
		return "changed by the same deployment", changed(diff)
	}
	for _, c := range whatIfOf(t, e, path, body) {
		if c["changeType"] != "NoChange" && c["changeType"] != "Ignore" {
			delta, _ := json.Marshal(c["delta"])
			why += fmt.Sprintf("%s of %s: %s\n", c["changeType"], c["resourceId"], delta)
		}
	}
	if why != "" {
		return "what-if with changes", why
	}
	return asItShouldBe, ""
}

// changed are the lines of a difference that say what is different.
func changed(diff string) string {
	var lines []string
	for line := range strings.Lines(diff) {
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") || strings.Contains(line, "/providers/") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// requestFor is a deployment of a template, with its parameters.
func requestFor(t *testing.T, base string) (path, body string) {
	text, err := os.ReadFile(base + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var request map[string]any
	if err := json.Unmarshal([]byte(deploymentOf(t, string(text))), &request); err != nil {
		t.Fatal(err)
	}
	properties := request["properties"].(map[string]any)
	if given, err := os.ReadFile(base + ".parameters.json"); err == nil {
		document, err := lenient.Decode(given)
		if err != nil {
			t.Fatal(err)
		}
		parameters := properties["parameters"].(map[string]any)
		values, _ := document["parameters"].(map[string]any)
		maps.Copy(parameters, values)
	}
	path = group + "/providers/Microsoft.Resources/deployments/d"
	if strings.Contains(string(text), "subscriptionDeploymentTemplate.json") {
		request["location"] = "eastus"
		path = group[:strings.Index(strings.ToLower(group), "/resourcegroups/")] + "/providers/Microsoft.Resources/deployments/d"
	}
	whole, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(whole)
}

// all are the resources that a deployment made, and those of its group, by their ids.
func all(e *core.Emulator, deployment string) map[string]any {
	var ids []string
	for path, list := range map[string]string{deployment: "properties", group + "/resources": "value"} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest("GET", path+"?api-version=2024-03-01", nil))
		var view map[string]any
		_ = json.Unmarshal(w.Body.Bytes(), &view)
		entries, _ := view[list].([]any)
		if properties, ok := view[list].(map[string]any); ok {
			entries, _ = properties["outputResources"].([]any)
		}
		for _, x := range entries {
			entry, _ := x.(map[string]any)
			ids = append(ids, fmt.Sprint(entry["id"]))
		}
	}
	slices.Sort(ids)
	found := map[string]any{}
	for _, id := range slices.Compact(ids) {
		view, _ := seen(e, id+"?api-version=2025-05-01")
		found[id] = settled(timeless(view))
	}
	return found
}

// timeless is a resource without what each write changes, as on Azure: the times of shares and containers, the versions of secrets, and the
// writers of policies.
func timeless(view any) any {
	resource, _ := view.(map[string]any)
	properties, _ := resource["properties"].(map[string]any)
	for _, name := range []string{"lastModifiedTime", "secretUriWithVersion"} {
		delete(properties, name)
	}
	if attributes, ok := properties["attributes"].(map[string]any); ok {
		delete(attributes, "created")
		delete(attributes, "updated")
	}
	if metadata, ok := properties["metadata"].(map[string]any); ok {
		delete(metadata, "updatedBy")
	}
	return view
}
