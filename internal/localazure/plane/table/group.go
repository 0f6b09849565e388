package table

import (
	"net/http"

	"kaz/internal/localazure/plane/table/entity"
	"kaz/internal/localazure/plane/table/kept"
)

// group are the changes of a batch: entities of a table with the same partition key, each of them once.
type group struct {
	writes    *kept.Writes
	table     kept.Table
	partition string
	rows      map[string]bool
	last      *call
}

// add carries out a change as part of the group, which a nil group begins. The caller holds the lock.
func (g *group) add(one *call, o operation) (*group, error) {
	key, err := one.key()
	if err != nil {
		return g, err
	}
	if g == nil {
		g = &group{writes: one.service.kept.Begin(one.table), table: one.table, partition: key.Partition, rows: map[string]bool{}}
	}
	g.last = one
	switch {
	case key.Partition != g.partition || one.table != g.table:
		return g, refuse(http.StatusBadRequest, "CommandsInBatchActOnDifferentPartitions",
			"All commands in a batch must operate on same entity group.")
	case g.rows[key.Row]:
		return g, refuse(http.StatusBadRequest, "InvalidDuplicateRow", "The batch request contains multiple changes with same row key. "+
			"An entity can appear only once in a batch request.")
	}
	g.rows[key.Row] = true
	return g, o.change(one, g.writes)
}

// key returns the key of the entity that a change is about.
func (c *call) key() (entity.Key, error) {
	if c.path.kind == oneEntity {
		return c.path.key, nil
	}
	e, err := c.entity(nil)
	c.given = &e
	return e.Key, err
}
