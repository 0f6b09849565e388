package registry

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// callbackField is the field of a webhook's document with the address and the headers of its requests.
const callbackField = behaviour.Private + "callback"

// completeTasks gives webhooks, tasks and runs their actions that need more than a table.
func completeTasks(types []behaviour.Type) {
	of := func(name string) *behaviour.Type {
		return &types[slices.IndexFunc(types, func(t behaviour.Type) bool { return t.Name == registryType+"/"+name })]
	}
	webhooks := of("webhooks")
	fill := webhooks.Fill
	webhooks.Own = append(webhooks.Own, callbackField)
	webhooks.Fill = func(c *behaviour.Call) error {
		if callback := behaviour.Sub(c.Body, "properties"); callback["serviceUri"] != nil {
			c.Doc[callbackField] = behaviour.Object{"serviceUri": callback["serviceUri"]}
			if headers := behaviour.Sub(callback, "customHeaders"); headers != nil {
				behaviour.Set(c.Doc, callbackField+".customHeaders", behaviour.Clone(headers))
			}
		}
		return fill(c)
	}
	webhooks.Show = func(_ *behaviour.Call, view behaviour.Object) { behaviour.Hide(view) }
	webhooks.Actions["getCallbackConfig"] = behaviour.Action{Do: func(c *behaviour.Call) (any, error) {
		return behaviour.Clone(behaviour.Sub(c.Doc, callbackField)), nil
	}}
	for _, name := range []string{"tasks", "taskRuns"} {
		of(name).Actions = map[string]behaviour.Action{"listDetails": {Do: func(c *behaviour.Call) (any, error) { return c.Doc, nil }}}
	}
	of("taskRuns").Own = []string{"properties.runResult"}
	of("taskRuns").Settle = func(c *behaviour.Call) error {
		if request := behaviour.Sub(c.Doc, "properties.runRequest"); request != nil {
			result, err := newRun(c, c.ID.Parent(), request)
			behaviour.Set(c.Doc, "properties.runResult", result)
			return err
		}
		return nil
	}
	of("runs").Actions["cancel"] = behaviour.Action{Do: func(c *behaviour.Call) (any, error) {
		behaviour.Set(c.Doc, "properties.status", "Canceled")
		return nil, nil
	}}
}

// scheduleRun stores a run of a task or of a quick build. Nothing runs it, so it stays queued.
func scheduleRun(c *behaviour.Call) (any, error) { return newRun(c, c.ID, c.Body) }

// newRun stores a run of a registry for a request.
func newRun(c *behaviour.Call, registry azure.ID, request behaviour.Object) (behaviour.Object, error) {
	kind := behaviour.Text(request, "type")
	properties := behaviour.Object{"status": "Queued", "runType": "QuickRun",
		"isArchiveEnabled": behaviour.Bool(request, "isArchiveEnabled"),
		"createTime":       behaviour.Timestamp(c.Now()), "lastUpdatedTime": behaviour.Timestamp(c.Now()), "provisioningState": "Succeeded"}
	switch {
	case strings.EqualFold(kind, "TaskRunRequest"):
		task := azure.ID(behaviour.Text(request, "taskId"))
		if _, there := c.Get(task); !there {
			return nil, behaviour.NotFound(task)
		}
		properties["task"] = task.Name()
	case strings.EqualFold(kind, "DockerBuildRequest"):
		properties["runType"] = "QuickBuild"
	}
	if platform := behaviour.Sub(request, "platform"); platform != nil {
		properties["platform"] = behaviour.Clone(platform)
	}
	last := 0
	for range c.List(registry, registryType+"/runs") {
		last++
	}
	name := fmt.Sprintf("ca%d", last+1)
	properties["runId"] = name
	id := registry.Child("runs", name)
	c.Put(id, behaviour.Object{"properties": properties})
	view, _ := c.View(id)
	return view, nil
}
