#include "tests/reference/chained_ties.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <random>

#include "tests/reference/canon_arithmetic.hpp"
#include "tests/reference/row_generators.hpp"

namespace bilogp::reference {
namespace {

using detail::Term;

constexpr double log2e = 0x1.715476p+0;

struct Candidate {
  std::uint32_t logit = 0;
  Term term;
};

// One addend of the chain: the leaves of a sub-tree, one in each quarter (or half, or the only column).
struct Link {
  std::array<std::uint32_t, 4> logits{};
  int leaves = 0;
  Term with;     // the partial sum when the decisive term is there
  Term without;  // and when it is not
  int steps = 0; // the next addend's exponent is anchor + steps
  int anchor = 0;
};

int trailing_zeros(const Term& term) {
  return std::countr_zero(term.significand);
}

// Of two neighbouring partial sums the rounder one marks a turning point of every rounding that keeps only the bits
// above its lowest; the next addend is placed so that its last place is twice that bit.
void place_next(Link& link) {
  const Term& round = trailing_zeros(link.with) > trailing_zeros(link.without) ? link.with : link.without;
  link.steps = trailing_zeros(round) + 1;
  link.anchor = round.exponent;
}

class ChainBuilder {
public:
  ChainBuilder(Storage storage, int levels, const ChainShape& shape, std::mt19937_64& random)
      : storage_(storage), levels_(levels), wanted_depth_(shape.depth), random_(random) {
    // A narrow row cannot reach the wanted depth anyway: no long search for its last few places.
    tries_ = levels < 9 ? 20'000 : 400'000;
    const Candidate start = candidate(shape.decisive_exponent + 0.25);
    decisive_logit = start.logit;
    current_.with = start.term;
    // A first addend 24 places up has its turning point below any such term.
    current_.anchor = start.term.exponent;
    current_.steps = 24;
    first_exponent_ = start.term.exponent;
  }

  // Links for levels 0, 1, ...: sub-trees of 1, 2, 4, ... columns. A level without a link stays empty.
  std::vector<std::optional<Link>> build() {
    std::vector<std::optional<Link>> links;
    for (int level = 0; level < levels_ && depth() < wanted_depth_; ++level) {
      const int missing = wanted_depth_ - depth() - current_.steps;
      const int links_after = levels_ - level - 1;
      const int wanted = links_after > 0 ? std::clamp((missing + links_after - 1) / links_after, 8, 24) : 1;
      std::optional<Link> link = search(std::min(1 << level, 4), wanted);
      if (link) current_ = *link;
      links.push_back(link);
    }
    return links;
  }

  [[nodiscard]] int depth() const {
    return current_.without.is_zero() ? 0 : current_.without.exponent - first_exponent_;
  }

  std::uint32_t decisive_logit = 0;

private:
  Candidate candidate(double exponent) {
    Candidate made;
    made.logit = representable(storage_, exponent / log2e);
    made.term = detail::to_term(detail::make_leaf(made.logit, scale_));
    return made;
  }

  std::vector<Candidate> pool(std::size_t count, double low, double high) {
    std::uniform_real_distribution<double> exponent(low, high);
    std::vector<Candidate> made;
    for (std::size_t i = 0; i < count; ++i) made.push_back(candidate(exponent(random_)));
    return made;
  }

  // An addend of the wanted exponent that lets the difference through and leaves sums that are round for `wanted`
  // steps; the best one seen when the tries run out.
  std::optional<Link> search(int leaves, int wanted) {
    const int exponent = current_.anchor + current_.steps;
    const auto large = pool(256, exponent - 1.0, exponent + 1.0);
    const auto small = pool(1024, exponent - 24.0, exponent - 0.5);
    std::optional<Link> best;
    const int tries = leaves == 1 ? 256 : tries_;
    for (int attempt = 0; attempt < tries; ++attempt) {
      const std::uint64_t pick = random_();
      std::array<const Candidate*, 4> chosen{&large[leaves == 1 ? static_cast<std::size_t>(attempt) : pick % 256],
                                             &small[(pick >> 8) % 1024], &small[(pick >> 18) % 1024],
                                             &small[(pick >> 28) % 1024]};
      Term addend = chosen[0]->term;
      if (leaves >= 2) addend = detail::add_terms(addend, chosen[1]->term);
      if (leaves == 4) addend = detail::add_terms(addend, detail::add_terms(chosen[2]->term, chosen[3]->term));
      if (addend.exponent != exponent) continue;
      Link link;
      link.with = detail::add_terms(addend, current_.with);
      link.without = detail::add_terms(addend, current_.without);
      if (link.with == link.without) continue;
      place_next(link);
      if (best && link.steps <= best->steps) continue;
      link.leaves = leaves;
      for (std::size_t i = 0; i < 4; ++i) link.logits[i] = chosen[i]->logit;
      best = link;
      if (link.steps >= wanted) break;
    }
    return best;
  }

  Storage storage_;
  int levels_;
  int wanted_depth_;
  int tries_ = 0;
  std::mt19937_64& random_;
  detail::Scale scale_ = detail::make_scale(1.0F);
  Link current_;
  int first_exponent_ = 0;
};

std::size_t random_below(std::mt19937_64& random, std::size_t bound) {
  return random() % bound;
}

} // namespace

ChainedTies make_chained_ties(std::int64_t columns, Storage storage, bool filled, std::uint64_t seed,
                              const ChainShape& shape) {
  const detail::DefaultEnvironment environment;
  std::mt19937_64 random(seed);
  const auto width = static_cast<std::size_t>(columns);
  // A chain of 2^levels columns: as few as a wide row needs, all that a narrow one has.
  const int most = static_cast<int>(std::bit_width(width)) - 1;
  const int least = std::min(most, 12);
  const int levels = least + static_cast<int>(random_below(random, static_cast<std::size_t>(most - least) + 1));
  const std::size_t size = std::size_t{1} << levels;

  ChainedTies made;
  const std::uint32_t filler =
      filled ? representable(storage, (shape.decisive_exponent - 50) / log2e) : detail::minus_infinity;
  made.logits.assign(width, filler);
  ChainBuilder builder(storage, levels, shape, random);
  const auto links = builder.build();
  made.depth = builder.depth();

  // Addition commutes: swapping the halves of any sub-trees, an exclusive or of the index, moves the chain about.
  const std::size_t block = random_below(random, width / size) * size;
  const std::size_t swaps = random_below(random, size);
  const auto place = [&](std::size_t column, std::uint32_t logit) { made.logits[block + (column ^ swaps)] = logit; };
  made.decisive_column = static_cast<std::int64_t>(block + swaps);
  place(0, builder.decisive_logit);
  for (std::size_t level = 0; level < links.size(); ++level) {
    if (!links[level]) continue;
    const auto leaves = static_cast<std::size_t>(links[level]->leaves);
    const std::size_t begin = std::size_t{1} << level;
    const std::size_t part = begin / leaves;
    for (std::size_t i = 0; i < leaves; ++i)
      place(begin + i * part + random_below(random, part), links[level]->logits[i]);
  }
  return made;
}

} // namespace bilogp::reference
