// The objective, and the search against landscapes that are known in full.
#include "scheduler/search.h"

#include <gtest/gtest.h>

#include <cmath>

namespace slate::scheduler {
namespace {

TEST(SearchTest, MakespanOfTurnsIsOne) {
  const double rates[] = {0.5, 0.5}, equal[] = {1, 1};
  EXPECT_DOUBLE_EQ(makespan(rates, equal), 1);
  const double uneven[] = {0.25, 0.75}, weights[] = {0.5, 1.5};
  EXPECT_DOUBLE_EQ(makespan(uneven, weights), 1);
}

TEST(SearchTest, MakespanCountsWhatIsLeftForTheSlower) {
  const double equal[] = {1, 1};
  const double both[] = {0.96, 0.70};  // together for 1.04, then 0.27 alone
  EXPECT_NEAR(makespan(both, equal), (1 / 0.96 + 1 - 0.70 / 0.96) / 2, 1e-12);
  const double greedy[] = {1.2, 0.0};
  EXPECT_NEAR(makespan(greedy, equal), (1 / 1.2 + 1) / 2, 1e-12);
  const double nothing[] = {0, 0};
  EXPECT_TRUE(std::isinf(makespan(nothing, equal)));
}

TEST(SearchTest, HalfOfTheFairShareIsTheFloor) {
  const double equal[] = {1, 1}, weights[] = {0.5, 1.5};
  const double rates[] = {0.8, 0.26}, low[] = {0.8, 0.24};
  EXPECT_FALSE(starves(rates, equal, 0.5));
  EXPECT_TRUE(starves(low, equal, 0.5));
  EXPECT_TRUE(starves(rates, weights, 0.5));  // of 0.75 it gets 0.26
}

struct Landscape {
  std::uint32_t units = 17;
  // Speed of each member by its units, concave: units over what saturates it.
  std::vector<double> saturates;
  double worker = 1;  // speed of the other form

  void rates(const Arrangement& a, std::span<double> out) const {
    for (std::size_t i = 0; i < saturates.size(); ++i) {
      const double part = a.units[i] / saturates[i];
      out[i] = a.sharing == Sharing::kTogether
                   ? 1.0 / static_cast<double>(saturates.size())
                   : std::min(1.0, part) * (a.forms[i] == Form::kWorker ? worker : 1);
    }
  }
};

std::uint32_t run(Search& search, const Landscape& land, const Search::Member& prototype,
                  bool together = true) {
  std::vector<Search::Member> members(land.saturates.size(), prototype);
  search.begin(std::move(members), {.units = land.units, .together = together, .floor = 0.5});
  std::array<double, kMostMembers> rates{};
  while (!search.done()) {
    land.rates(search.candidate(), rates);
    if (search.candidate().sharing == Sharing::kPlaced) {
      std::uint32_t sum = 0;
      for (std::size_t i = 0; i < land.saturates.size(); ++i) {
        EXPECT_GE(search.candidate().units[i], prototype.least_units);
        sum += search.candidate().units[i];
      }
      EXPECT_EQ(sum, land.units);
    }
    search.measured({rates.data(), land.saturates.size()});
    if (search.tried() > 500) {
      ADD_FAILURE() << "does not end";
      break;
    }
  }
  return search.tried();
}

TEST(SearchTest, TheBestSplitOfAPairIsFoundInADozenCandidates) {
  for (double first = 2; first <= 17; first += 1.5) {
    for (double second = 2; second <= 17; second += 1.5) {
      const Landscape land{.saturates = {first, second}};
      double best = 1;
      for (std::uint32_t a = 1; a < 17; ++a) {
        Arrangement split{.sharing = Sharing::kPlaced};
        split.units = {a, 17 - a};
        double rates[2];
        const double weights[] = {1, 1};
        land.rates(split, rates);
        if (!starves(rates, weights, 0.5)) best = std::min(best, makespan(rates, weights));
      }
      Search search;
      EXPECT_LE(run(search, land, {}), 14U);
      EXPECT_LT(std::min(1.0, search.best_score()), best * 1.04) << first << " " << second;
    }
  }
}

TEST(SearchTest, FormsAreFlippedAtTheBestSplit) {
  Search search;
  Search::Member flips;
  flips.flips = true;
  run(search, {.saturates = {9, 9}, .worker = 1.3}, flips);
  EXPECT_EQ(search.best().forms[0], Form::kWorker);
  EXPECT_EQ(search.best().forms[1], Form::kWorker);
  run(search, {.saturates = {9, 9}, .worker = 0.9}, flips);
  EXPECT_EQ(search.best().forms[0], Form::kNative);
}

/// Two members, the first of long launches if it `lasts`, of which the second gets less when all
/// are together, unless it goes ahead; on parts of the device each gets `apart`. Says how many
/// candidates had somebody ahead.
std::uint32_t search_ahead(Search& search, double apart, const Search::Space& space,
                           bool lasts = false) {
  Search::Member first;
  first.lasts = lasts;
  search.begin({first, Search::Member{}}, space);
  std::uint32_t ahead = 0;
  while (!search.done()) {
    const Arrangement& tried = search.candidate();
    const bool lets = tried.ahead[1];
    EXPECT_FALSE(tried.ahead[0]);
    if (lets) {
      ++ahead;
      EXPECT_EQ(tried.sharing, Sharing::kTogether);
    }
    const double together[] = {lets ? 0.72 : 0.85, lets ? 0.72 : 0.59}, parts[] = {apart, apart};
    search.measured(tried.sharing == Sharing::kTogether ? together : parts);
  }
  return ahead;
}

TEST(SearchTest, WhoeverGetsLeastTogetherIsTriedAhead) {
  for (const bool lasts : {false, true}) {
    Search search;
    EXPECT_EQ(search_ahead(search, 0.5, {.units = 17}, lasts), 1U);
    EXPECT_TRUE(search.best().ahead[1]);
    EXPECT_NEAR(search.best_score(), 0.5 / 0.72, 1e-9);
  }
}

TEST(SearchTest, NobodyIsTriedAheadOfOneAlikeOrOfALongOneWhereApartIsMuchBetter) {
  Search search;
  EXPECT_EQ(search_ahead(search, 0.9, {.units = 17}), 1U);
  EXPECT_EQ(search.best().sharing, Sharing::kPlaced);
  EXPECT_EQ(search_ahead(search, 0.9, {.units = 17}, true), 0U);
  EXPECT_EQ(search_ahead(search, 0.5, {.units = 17, .alike = true}), 0U);
}

/// What two members reach together when one has so many workers on each SM.
std::uint32_t search_quotas(Search& search, double (*makespan_at)(const Arrangement&)) {
  Search::Member member;
  member.room = 8;
  search.begin({member, Search::Member{}}, {.units = 17});
  std::uint32_t quotas = 0;
  while (!search.done()) {
    const Arrangement& tried = search.candidate();
    EXPECT_EQ(tried.quotas[1], 0U);
    if (tried.quotas[0] != 0) {
      ++quotas;
      EXPECT_EQ(tried.forms[0], Form::kWorker);
      EXPECT_EQ(tried.sharing, Sharing::kTogether);
    }
    const double rate = 0.5 / makespan_at(tried);
    const double rates[] = {rate, rate};
    search.measured(rates);
  }
  return quotas;
}

TEST(SearchTest, AMemberWithFewerWorkersLeavesTheOtherRoom) {
  Search search;
  EXPECT_EQ(search_quotas(search,
                          [](const Arrangement& a) {
                            return a.quotas[0] == 2 ? 0.66 : a.quotas[0] == 0 ? 0.8 : 0.7;
                          }),
            3U);
  EXPECT_EQ(search.best().quotas[0], 2U);
  EXPECT_NEAR(search.best_score(), 0.66, 1e-9);
}

TEST(SearchTest, NoQuotasAreTriedWherePartsGainAThird) {
  for (const double apart : {0.65, 0.75}) {
    Search search;
    Search::Member member;
    member.room = 8;
    search.begin({member, member}, {.units = 17});
    bool quotas = false;
    while (!search.done()) {
      const Arrangement& tried = search.candidate();
      quotas |= tried.quotas[0] != 0;
      const double rate = tried.sharing == Sharing::kPlaced ? apart : 0.51;
      const double rates[] = {rate, rate};
      search.measured(rates);
    }
    EXPECT_EQ(quotas, apart < 0.7);
    EXPECT_NEAR(search.best_score(), 0.5 / apart, 1e-9);
  }
}

TEST(SearchTest, QuotasThatGainNothingEndAfterOne) {
  Search search;
  EXPECT_EQ(
      search_quotas(search, [](const Arrangement& a) { return a.quotas[0] != 0 ? 1.02 : 0.9; }),
      1U);
  EXPECT_EQ(search.best().quotas[0], 0U);
}

TEST(SearchTest, NothingIsTriedTogetherWithWorkersOnAllSms) {
  Search search;
  Search::Member filling;
  filling.form = filling.form_together = Form::kWorker;
  filling.fills = true;
  filling.room = 8;
  Search::Member other;
  other.room = 8;
  search.begin({filling, other}, {.units = 17});
  std::uint32_t together = 0;
  while (!search.done()) {
    const Arrangement& tried = search.candidate();
    if (tried.sharing == Sharing::kTogether) {
      ++together;
      EXPECT_GT(tried.quotas[0], 0U);
    }
    const double rates[] = {0.5, 0.5};
    search.measured(rates);
  }
  EXPECT_EQ(together, 1U);  // with half of the workers
}

TEST(SearchTest, TogetherEachRunsInTheFormThatLeavesRoom) {
  Search search;
  Search::Member filling;
  filling.form = Form::kWorker;
  filling.form_together = Form::kNative;
  filling.fills = true;
  search.begin({filling, Search::Member{}}, {.units = 17});
  EXPECT_TRUE(search.may_together());
  EXPECT_EQ(search.together_score(), 1);  // as good as turns, until it is known
  EXPECT_EQ(search.candidate(), search.together());
  EXPECT_EQ(search.candidate().forms[0], Form::kNative);
  const double rates[] = {0.5, 0.5};
  search.measured(rates);
  EXPECT_EQ(search.candidate().sharing, Sharing::kPlaced);
  EXPECT_EQ(search.candidate().forms[0], Form::kWorker);
}

TEST(SearchTest, TogetherIsKeptInMindThoughSomebodyGetsLittle) {
  Search search;
  search.begin({Search::Member{}, Search::Member{}}, {.units = 17, .in_parts = false});
  const double little[] = {0.9, 0.1};
  search.measured(little);
  EXPECT_TRUE(search.done());
  EXPECT_GT(search.best_score(), 1);  // nobody may be left so little for the good of all
  EXPECT_NEAR(search.together_score(), (1 / 0.9 + 1 - 0.1 / 0.9) / 2, 1e-9);
  const double nothing[] = {0.9, 0.01};
  search.together_seen(nothing);
  EXPECT_GT(search.together_score(), 100);
}

TEST(SearchTest, WhatIsNotAsTheWeightsIsNoCandidateWhereTheyCount) {
  const double weights[] = {0.5, 1.5};
  const double even[] = {0.26, 0.75}, uneven[] = {0.3, 0.75};
  EXPECT_FALSE(is_uneven(even, weights));
  EXPECT_TRUE(is_uneven(uneven, weights));
  for (const bool counts : {false, true}) {
    Search search;
    Search::Member light, heavy;
    light.weight = 0.5;
    heavy.weight = 1.5;
    search.begin({light, heavy}, {.units = 17, .together = false, .even = counts});
    search.measured(uneven);
    EXPECT_EQ(search.best_score() < 1, !counts);
  }
}

TEST(SearchTest, NobodyIsSqueezedBelowItsLeastWhereThereIsRoom) {
  Search search;
  Search::Member wide;
  wide.least_units = 5;
  run(search, {.saturates = {3, 17, 3}}, wide);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GE(search.best().units[i], 5U);
}

TEST(SearchTest, EightMembersAreSearchedInBoundedSteps) {
  Search search;
  EXPECT_LE(run(search, {.saturates = {2, 2, 2, 2, 4, 4, 4, 4}}, {}), 60U);
  EXPECT_LT(search.best_score(), 0.5);
  EXPECT_LE(run(search, {.saturates = std::vector<double>(8, 17.0)}, {}), 20U);  // nothing to gain
  EXPECT_GE(search.best_score(), 0.98);
}

TEST(SearchTest, WithoutRoomForAllOnlyTogetherIsTried) {
  Search search;
  EXPECT_EQ(run(search, {.units = 2, .saturates = {1, 1, 1}}, {}), 1U);
  search.begin({Search::Member{}, Search::Member{}}, {.units = 1, .together = false});
  EXPECT_TRUE(search.done());
}

TEST(SearchTest, RejectedCandidatesAreNeverTheBest) {
  Search search;
  search.begin({Search::Member{}, Search::Member{}}, {.units = 17});
  std::uint32_t guard = 0;
  while (!search.done() && ++guard < 100) search.rejected();
  EXPECT_TRUE(search.done());
  EXPECT_TRUE(std::isinf(search.best_score()));
}

TEST(SearchTest, AWinnerThatDoesNotKeepItsPromiseMakesRoomForTheNext) {
  Search search;
  run(search, {.saturates = {8.5, 17}}, {});
  const Arrangement won = search.best();
  const double promised = search.best_score();
  EXPECT_EQ(search.best_watched(), Milliseconds(0));
  search.verified(won, promised * 1.2, Milliseconds(6));
  EXPECT_NE(search.best(), won);
  EXPECT_LT(search.best_score(), promised * 1.2);
  // One after the other is watched, until what was promised is kept, or nothing is left.
  std::uint32_t watched = 1;
  for (; search.best_watched() == Milliseconds(0); ++watched) {
    ASSERT_LE(watched, search.tried());
    search.verified(search.best(), 2, Milliseconds(6));
  }
  EXPECT_EQ(search.best(), won);
  EXPECT_DOUBLE_EQ(search.best_score(), promised * 1.2);
}

TEST(SearchTest, AShortLookDoesNotOutweighALongOne) {
  Search search;
  run(search, {.saturates = {8.5, 17}}, {});
  const Arrangement won = search.best();
  search.verified(won, 0.5, Milliseconds(6));
  search.verified(won, 0.4, Milliseconds(12));
  EXPECT_DOUBLE_EQ(search.best_score(), 0.4);  // the longer one includes the shorter one
  search.verified(won, 0.6, Milliseconds(6));
  EXPECT_EQ(search.best(), won);
  EXPECT_NEAR(search.best_score(), 0.4 + 0.2 * 6 / 18, 1e-9);
  search.verified(won, 2, Milliseconds(24));
  EXPECT_NE(search.best(), won);
  search.verified(won, 0.5, Milliseconds(6));
  EXPECT_NE(search.best(), won);
}

TEST(SearchTest, KnownScalingIsWhereItStarts) {
  Search::Member small, large;
  small.points = {{.units = 3, .rate = 0.98}, {.units = 8, .rate = 1}};
  large.points = {{.units = 8, .rate = 0.5}, {.units = 14, .rate = 0.85}};
  Search search;
  search.begin({small, large}, {.units = 17, .together = false});
  EXPECT_EQ(search.candidate().units[0], 3U);
}

}  // namespace
}  // namespace slate::scheduler
