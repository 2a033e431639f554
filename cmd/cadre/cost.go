package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cadre-dev/cadre/event"
)

// cost is a sum over agents.
type cost struct {
	usd    float64
	known  bool // false when the price of any model is unknown
	rounds int
	tokens int
	agents int
}

func (c *cost) add(u event.AgentTally) {
	spent := u.Spent()
	c.usd += spent.CostUSD
	c.known = c.known && !spent.Unpriced
	c.rounds += u.Rounds
	c.tokens += spent.Usage.Total()
	c.agents++
}

func (c cost) String() string {
	if !c.known {
		return "unknown price"
	}
	return fmt.Sprintf("$%.4f", c.usd)
}

// costLine says in one line what a run cost, the lead's own part and the
// team's; "" when no model was asked.
func costLine(usage []event.AgentTally) string {
	all, own, others := cost{known: true}, cost{known: true}, cost{known: true}
	for _, u := range usage {
		all.add(u)
		if u.Agent.ID == "" {
			own.add(u)
		} else {
			others.add(u)
		}
	}
	if all.rounds == 0 {
		return ""
	}
	split := ""
	if others.agents > 0 && (own.known || others.known) {
		split = fmt.Sprintf(" (own %s, %s %s)", own, count(others.agents, "other agent"), others)
	}
	return fmt.Sprintf("cost: %s%s, %s, %s tokens", all, split, count(all.rounds, "round"), grouped(all.tokens))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// grouped writes a number with commas between thousands.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// costTable lists what each agent used.
func costTable(usage []event.AgentTally) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "agent\trounds\tcalls\tin\tcached\tout\ttime\tcost\t")
	for _, u := range usage {
		one := cost{known: true}
		one.add(u)
		used := u.Spent().Usage
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t\n", agentName(u), u.Rounds, u.ToolCalls,
			grouped(used.InputTokens+used.CacheCreationInputTokens), grouped(used.CacheReadInputTokens),
			grouped(used.OutputTokens), u.Took.Round(100*time.Millisecond), one)
	}
	w.Flush()
	return strings.TrimRight(b.String(), "\n")
}

func agentName(u event.AgentTally) string {
	switch {
	case u.Agent.ID == "":
		return "lead"
	case u.Agent.Name == "":
		return u.Agent.ID
	}
	return u.Agent.Name
}
