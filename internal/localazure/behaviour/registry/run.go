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
	written := of("tasks").Fill
	of("tasks").Fill = func(c *behaviour.Call) error {
		if err := keepTriggers(c); err != nil {
			return err
		}
		return written(c)
	}
	of("taskRuns").Own = []string{"properties.runResult"}
	of("taskRuns").Settle = func(c *behaviour.Call) error {
		again := c.Old != nil && !c.Changed("properties.runRequest") && !c.Changed("properties.forceUpdateTag")
		if request := behaviour.Sub(c.Doc, "properties.runRequest"); request != nil && !again {
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

// agentCPUs is the number of CPUs of a run that says nothing of them.
const agentCPUs = 2

// keepTriggers completes the source triggers of a PATCH with what the triggers of their names have.
func keepTriggers(c *behaviour.Call) error {
	const path = "properties.trigger.sourceTriggers"
	for _, trigger := range behaviour.Objects(c.Doc, path) {
		if old := behaviour.Named(c.Old, path, behaviour.Text(trigger, "name")); c.Verb == behaviour.Patch && old != nil {
			complete(trigger, old)
		}
	}
	return nil
}

// complete writes what an object lacks of another one.
func complete(object, other behaviour.Object) {
	for key, value := range other {
		inner, deep := object[key].(behaviour.Object)
		from, same := value.(behaviour.Object)
		if deep && same {
			complete(inner, from)
		} else if object[key] == nil {
			object[key] = behaviour.Clone(value)
		}
	}
}

// scheduleRun stores a run of a task or of a quick build. Nothing runs it, so it stays queued.
func scheduleRun(c *behaviour.Call) (any, error) { return newRun(c, c.ID, c.Body) }

// newRun stores a run of a registry for a request.
func newRun(c *behaviour.Call, registry azure.ID, request behaviour.Object) (behaviour.Object, error) {
	kind := behaviour.Text(request, "type")
	properties := behaviour.Object{"status": "Queued", "runType": "QuickRun", "agentConfiguration": behaviour.Object{"cpu": agentCPUs},
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
	if cpus := behaviour.At(request, "agentConfiguration.cpu"); cpus != nil {
		behaviour.Set(properties, "agentConfiguration.cpu", cpus)
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
