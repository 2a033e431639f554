package team

import (
	"math/rand/v2"
	"strings"
)

// The words of a random team name: three of them, as observed (facts:
// claude-code §2.1).
var (
	nameManners = strings.Fields(`amber brisk calm candid crisp deft eager fleet frank gentle golden hardy honest jolly keen
		lively lucid mellow merry nimble noble placid plucky prompt proud quiet ready robust serene sharp silver steady
		sturdy sunny swift tidy trusty vivid warm witty`)
	nameDoings = strings.Fields(`baking carving climbing coasting drifting drumming fishing flying forging gliding grazing
		hiking humming juggling knitting marching mending mowing painting planting racing reading roaming rowing sailing
		sewing singing skating sketching sowing strolling surfing swimming tuning walking weaving whistling writing`)
	nameBeings = strings.Fields(`badger beaver bison bluejay cedar condor crane cricket curlew dolphin egret falcon ferret
		finch gannet gecko heron hornbill ibex jackdaw kestrel lemur lynx magpie marmot marten newt ocelot oriole osprey otter
		plover puffin raven robin salmon sparrow stoat swallow tapir thrush walrus wombat`)
)

func randomName() string {
	pick := func(words []string) string { return words[rand.IntN(len(words))] }
	return pick(nameManners) + "-" + pick(nameDoings) + "-" + pick(nameBeings)
}
