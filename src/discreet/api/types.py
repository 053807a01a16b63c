"""The types of arguments and results that have no name of their own in ``discreet``, for annotations.

    def share(found: ds.types.AveragingAudit) -> float: ...

A test walks all signatures and results: a type that a user meets is in ``discreet`` or here.
"""

from __future__ import annotations

from discreet.advise.advise import Advice, JudgedNoise, Proposal, Task
from discreet.advise.declared_geography import DeclaredStudy, PlaceKnown
from discreet.advise.facts import Attacked, Facts, RiskiestStatistic
from discreet.advise.forecast import (
    Candidate,
    CandidateForecast,
    Forecast,
    LawForecast,
    MarginForecast,
    Unavailable,
)
from discreet.advise.hierarchical import HierarchyForecast, QueryForecast
from discreet.advise.prior_knowledge import Study, StudyOutcome, UtilityDifferences
from discreet.advise.strategy import ComparedError, StrategyAdvice, Wanted
from discreet.advise.swap import RateTrial, SwapAdvice
from discreet.api.risk import Averaging, Bound, Deltas, Subsets
from discreet.audit.attack import NotPossible, OutsiderDifferences, OutsiderFindings
from discreet.audit.audit import (
    Audit,
    AveragingAudit,
    BayesAudit,
    BoundsAudit,
    DifferencingAudit,
    KeyGapAudit,
    LeastSquaresAudit,
    NoiseChoice,
    Protection,
    ReconstructionAudit,
    RedundancyAudit,
    Region,
    RemovalAudit,
    SwapProtection,
    WeightsAudit,
)
from discreet.audit.averaging import AveragingFindings, Bin, ExposedCell, MethodExpectation, Realised
from discreet.audit.bayes import (
    BayesScan,
    Belief,
    ChainFinding,
    ExposedValues,
    LevelFinding,
    LevelsScan,
    NamedCell,
)
from discreet.audit.bayes_histograms import AreaAttack, HistogramFinding, HistogramPrior, HistogramScan
from discreet.audit.bayes_measurements import AdversaryFinding, CountRisk, LargerCount, PriorRisk
from discreet.audit.bounds import BoundFindings, BoundJudgement, Deduced, TableCell
from discreet.audit.corrections import (
    Averaged,
    Corrections,
    CorrectionsJudgement,
    ExposedPerson,
    Relation,
    SummedLoss,
)
from discreet.audit.declared_averaging import ExposedCount
from discreet.audit.differencing import Apparent, Judgement, Subtraction, Update, UpdateJudgement
from discreet.audit.differencing_areas import (
    Afterwards,
    AreaDifferences,
    ListedDifference,
    MapDifferences,
    MapFinding,
    MapJudgement,
)
from discreet.audit.disclosure import (
    AreaDisclosures,
    Chance,
    DisclosureFigures,
    Disclosures,
    NamedDisclosure,
    Tally,
)
from discreet.audit.estimates import CubeExposure, EstimateFindings
from discreet.audit.fits import AreaError, FitError, FitErrors
from discreet.audit.hierarchy import Accuracy, HierarchyAudit, SizeError
from discreet.audit.key_gaps import KeyGapFindings, KeyGapJudgement
from discreet.audit.least_squares import Expectation, LeastSquaresFindings, LeastSquaresJudgement
from discreet.audit.linkage import Confirmed
from discreet.audit.measures import (
    CellPrivacy,
    CurvePoint,
    MapDifference,
    Privacy,
    PTableDifference,
    Rebuilt,
    ReleaseDifference,
    RepeatedStatistic,
    RepeatedStatistics,
)
from discreet.audit.ptable_change import Knowledge, PTableChange, PTableChangeJudgement
from discreet.audit.reconstruction import JudgedReconstruction, ReconstructionFindings
from discreet.audit.redundancy import UniverseRedundancy
from discreet.audit.removal import RecoveredCell, RemovalFindings, RemovalJudgement
from discreet.audit.session import SessionFindings
from discreet.audit.utility import AreaDistortion, SizeClass, TwoWay, Utility
from discreet.audit.utility_figures import ErrorComparison, ErrorFigures, ErrorWays, GapFigures, Margin
from discreet.audit.verdict import GateVerdict
from discreet.audit.weights import WeightFindings, WeightJudgement
from discreet.hierarchy.errors import AdjustedError
from discreet.inference.estimates import Effect, Range
from discreet.io.ptable_files import PTableFormat
from discreet.maths.attacks.averaging import Method, Recovery
from discreet.maths.attacks.bayes_findings import (
    CategoryAttack,
    CorrectAt,
    CountAttack,
    HierarchyAttack,
    HistogramAttack,
    LevelsAttack,
    NestedAttack,
    PublishedCount,
    PublishedTogether,
    TogetherAttack,
)
from discreet.maths.attacks.bayes_hierarchy import Chain
from discreet.maths.attacks.bounds import Pinning
from discreet.maths.attacks.disclosure import RowKind
from discreet.maths.attacks.reconstruction import Status
from discreet.maths.attacks.redundancy import Average, CategoryLevel, Exposure, Redundancy
from discreet.maths.attacks.subsets import SubsetReconstruction
from discreet.maths.attacks.tuples import Expected
from discreet.maths.feasible import Constraint, Line, LineLimit, OneParameter, Plane
from discreet.maths.inference.intervals import Prior
from discreet.maths.noise.additive import AdditiveLaw, Law, LawKind
from discreet.maths.noise.certificates import Certificate
from discreet.maths.noise.exponential import UtilityLaw
from discreet.maths.noise.hellinger import HellingerLaw, PTableLaw
from discreet.maths.noise.law import Listed, Loss, Pmf, Symmetric
from discreet.maths.noise.ptable import TableFacts
from discreet.maths.noise.ptable_solver import PTableParameters, Variance
from discreet.maths.noise.publishing import Negatives, PublishedLaw, Publishing
from discreet.maths.privacy.accounting import Converted
from discreet.maths.privacy.allowance import AdvancedSum
from discreet.maths.privacy.composition import Composition, Total, Way
from discreet.maths.utility import Association, CellError, Measure
from discreet.page.charts import Chart
from discreet.page.skeleton import Part
from discreet.perturb.ledger import Account, Entry, Head
from discreet.perturb.noise import Amplified, Guarantee
from discreet.programme.codelist import Codelist
from discreet.programme.definitions import Definition
from discreet.programme.inference import Decision
from discreet.programme.inference import Role as ColumnRole
from discreet.programme.noise import Protects
from discreet.programme.population import SampleMethod
from discreet.release.certify import Certified
from discreet.release.reader import HasRelease, PublishedCodes
from discreet.release.signature import SignatureState, Signed
from discreet.release.verify import Verification
from discreet.serve.http.tokens import Role as TokenRole
from discreet.serve.http.tokens import Token
from discreet.swap.figures import Distances, LevelFigures, SwapFigures, TableChange, Unswapped

__all__ = [
    "Account",
    "Accuracy",
    "AdditiveLaw",
    "AdjustedError",
    "AdvancedSum",
    "AdversaryFinding",
    "Advice",
    "Afterwards",
    "Amplified",
    "Apparent",
    "AreaAttack",
    "AreaDifferences",
    "AreaDisclosures",
    "AreaDistortion",
    "AreaError",
    "Association",
    "Attacked",
    "Audit",
    "Average",
    "Averaged",
    "Averaging",
    "AveragingAudit",
    "AveragingFindings",
    "BayesAudit",
    "BayesScan",
    "Belief",
    "Bin",
    "Bound",
    "BoundFindings",
    "BoundJudgement",
    "BoundsAudit",
    "Candidate",
    "CandidateForecast",
    "CategoryAttack",
    "CategoryLevel",
    "CellError",
    "CellPrivacy",
    "Certificate",
    "Certified",
    "Chain",
    "ChainFinding",
    "Chance",
    "Chart",
    "Codelist",
    "ColumnRole",
    "ComparedError",
    "Composition",
    "Confirmed",
    "Constraint",
    "Converted",
    "CorrectAt",
    "Corrections",
    "CorrectionsJudgement",
    "CountAttack",
    "CountRisk",
    "CubeExposure",
    "CurvePoint",
    "Decision",
    "DeclaredStudy",
    "Deduced",
    "Definition",
    "Deltas",
    "DifferencingAudit",
    "DisclosureFigures",
    "Disclosures",
    "Distances",
    "Effect",
    "Entry",
    "ErrorComparison",
    "ErrorFigures",
    "ErrorWays",
    "EstimateFindings",
    "Expectation",
    "Expected",
    "ExposedCell",
    "ExposedCount",
    "ExposedPerson",
    "ExposedValues",
    "Exposure",
    "Facts",
    "FitError",
    "FitErrors",
    "Forecast",
    "GapFigures",
    "GateVerdict",
    "Guarantee",
    "HasRelease",
    "Head",
    "HellingerLaw",
    "HierarchyAttack",
    "HierarchyAudit",
    "HierarchyForecast",
    "HistogramAttack",
    "HistogramFinding",
    "HistogramPrior",
    "HistogramScan",
    "JudgedNoise",
    "JudgedReconstruction",
    "Judgement",
    "KeyGapAudit",
    "KeyGapFindings",
    "KeyGapJudgement",
    "Knowledge",
    "LargerCount",
    "Law",
    "LawForecast",
    "LawKind",
    "LeastSquaresAudit",
    "LeastSquaresFindings",
    "LeastSquaresJudgement",
    "LevelFigures",
    "LevelFinding",
    "LevelsAttack",
    "LevelsScan",
    "Line",
    "LineLimit",
    "Listed",
    "ListedDifference",
    "Loss",
    "MapDifference",
    "MapDifferences",
    "MapFinding",
    "MapJudgement",
    "Margin",
    "MarginForecast",
    "Measure",
    "Method",
    "MethodExpectation",
    "NamedCell",
    "NamedDisclosure",
    "Negatives",
    "NestedAttack",
    "NoiseChoice",
    "NotPossible",
    "OneParameter",
    "OutsiderDifferences",
    "OutsiderFindings",
    "PTableChange",
    "PTableChangeJudgement",
    "PTableDifference",
    "PTableFormat",
    "PTableLaw",
    "PTableParameters",
    "Part",
    "Pinning",
    "PlaceKnown",
    "Plane",
    "Pmf",
    "Prior",
    "PriorRisk",
    "Privacy",
    "Proposal",
    "Protection",
    "Protects",
    "PublishedCodes",
    "PublishedCount",
    "PublishedLaw",
    "PublishedTogether",
    "Publishing",
    "QueryForecast",
    "Range",
    "RateTrial",
    "Realised",
    "Rebuilt",
    "ReconstructionAudit",
    "ReconstructionFindings",
    "RecoveredCell",
    "Recovery",
    "Redundancy",
    "RedundancyAudit",
    "Region",
    "Relation",
    "ReleaseDifference",
    "RemovalAudit",
    "RemovalFindings",
    "RemovalJudgement",
    "RepeatedStatistic",
    "RepeatedStatistics",
    "RiskiestStatistic",
    "RowKind",
    "SampleMethod",
    "SessionFindings",
    "SignatureState",
    "Signed",
    "SizeClass",
    "SizeError",
    "Status",
    "StrategyAdvice",
    "Study",
    "StudyOutcome",
    "SubsetReconstruction",
    "Subsets",
    "Subtraction",
    "SummedLoss",
    "SwapAdvice",
    "SwapFigures",
    "SwapProtection",
    "Symmetric",
    "TableCell",
    "TableChange",
    "TableFacts",
    "Tally",
    "Task",
    "TogetherAttack",
    "Token",
    "TokenRole",
    "Total",
    "TwoWay",
    "Unavailable",
    "UniverseRedundancy",
    "Unswapped",
    "Update",
    "UpdateJudgement",
    "Utility",
    "UtilityDifferences",
    "UtilityLaw",
    "Variance",
    "Verification",
    "Wanted",
    "Way",
    "WeightFindings",
    "WeightJudgement",
    "WeightsAudit",
]
